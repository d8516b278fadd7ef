/* A library that takes a signal for itself, and passes nothing on. A fault ends the process. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static void ignore(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
}

static void give_up(int number, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;
    char text[128];
    int length = snprintf(text, sizeof text, "signal %d at %p, pc %#llx\n", number, info->si_addr,
                          (unsigned long long)interrupted->uc_mcontext.gregs[REG_RIP]);
    if (write(STDERR_FILENO, text, length) < 0)
        _exit(78);
    _exit(77);
}

/* Returns 0 if the signal is taken. */
uint64_t take_signal(uint64_t number)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    int is_fault = number == SIGSEGV || number == SIGBUS;
    action.sa_sigaction = is_fault ? give_up : ignore;
    return (uint64_t)sigaction((int)number, &action, NULL);
}
