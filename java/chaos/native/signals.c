/* The application's own timers, and its own handler of faults before the JVM's. */
#include "chaos.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#define KINDS 3
static const long PERIOD_US[KINDS] = {3000, 5000, 4000};
static atomic_long ticks[KINDS];
static timer_t timer;

static __attribute__((noinline)) uint64_t tick_work(int depth, uint64_t x)
{
    x = work_there(x, 20);
    return depth == 0 ? x : tick_work(depth - 1, x) + 1;
}

static void on_tick(int signal)
{
    int saved = errno;
    int kind = signal == SIGALRM ? 0 : signal == SIGPROF ? 1 : 2;
    atomic_fetch_add(&ticks[kind], tick_work(20, 1) == 0 ? 2 : 1);
    errno = saved;
}

/* SIGPROF is used only with `prof`, because another profiler may need it. */
NATIVE(void, timersOn)(JNIEnv *env, jclass type, jboolean prof)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 5};
    struct itimerval every = {{0, PERIOD_US[0]}, {0, PERIOD_US[0]}};
    struct itimerspec spec = {{0, PERIOD_US[2] * 1000}, {0, PERIOD_US[2] * 1000}};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGRTMIN + 5, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    if (prof) {
        sigaction(SIGPROF, &action, NULL);
        every.it_interval.tv_usec = every.it_value.tv_usec = PERIOD_US[1];
        setitimer(ITIMER_PROF, &every, NULL);
    }
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        timer_settime(timer, 0, &spec, NULL);
}

NATIVE(void, timersOff)(JNIEnv *env, jclass type, jboolean prof)
{
    struct itimerval none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &none, NULL);
    if (prof)
        setitimer(ITIMER_PROF, &none, NULL);
    timer_delete(timer);
}

NATIVE(jlong, ticks)(JNIEnv *env, jclass type, jint kind)
{
    return atomic_load(&ticks[kind]);
}

static struct sigaction before;
static char *forbidden;
static atomic_long foreign;
static _Thread_local sigjmp_buf landing;
static _Thread_local volatile int jumps;

/* Faults on our own page are handled here, by a jump or by skipping the load. All others are
 * passed to the JVM's handler, as a crash reporter would do. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
    char *address = info->si_addr;
    ucontext_t *interrupted = context;
    if (forbidden != NULL && address >= forbidden && address < forbidden + 4096) {
        if (jumps)
            siglongjmp(landing, 1);
        /* The load in `touch` is three bytes long. */
        interrupted->uc_mcontext.gregs[REG_RIP] += 3;
        interrupted->uc_mcontext.gregs[REG_RAX] = 77;
        return;
    }
    atomic_fetch_add(&foreign, 1);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signal, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(signal);
    else
        abort();
}

NATIVE(void, faultsOn)(JNIEnv *env, jclass type)
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART};
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    sigaction(SIGSEGV, NULL, &before);
    forbidden = page;
    sigaction(SIGSEGV, &action, NULL);
}

static __attribute__((noinline)) long touch(char *where)
{
    long value;
    __asm__ volatile(".byte 0x48, 0x8b, 0x07" : "=a"(value) : "D"(where) : "memory");
    return value;
}

/* Causes a number of faults of both kinds; returns how many were handled wrongly. */
NATIVE(jint, faults)(JNIEnv *env, jclass type, jint count)
{
    volatile int errors = 0;
    if (forbidden == NULL)
        return 0;
    for (volatile int i = 0; i < count; i++) {
        jumps = 0;
        errors += touch(forbidden + 8 * (i % 500)) != 77;
        jumps = 1;
        if (sigsetjmp(landing, 1) == 0) {
            touch(forbidden + 8 * (i % 500));
            errors++;
        }
        jumps = 0;
    }
    return errors;
}
