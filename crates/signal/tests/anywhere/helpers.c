// Helpers that Rust cannot express safely: children that share the memory of their parent, and
// threads without thread-local storage. The test of the dynamic loader loads and unloads this
// library all the time; it needs the thread-local variable, constructor and destructor.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static __thread volatile long per_thread[1000];
static volatile long sum;

static void work(void) {
    for (int i = 0; i < 20000; i++) {
        per_thread[i % 1000] += i;
        sum += per_thread[(i * 7) % 1000];
    }
}

__attribute__((constructor)) static void loaded(void) { work(); }
__attribute__((destructor)) static void unloaded(void) { work(); }

long touch_thread_local(long value) {
    work();
    return per_thread[1] + value;
}

// Uses CPU time of the calling process.
static void burn(long cpu_ns) {
    struct timespec begin, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    do {
        for (int i = 0; i < 1000; i++) {
            sum += i;
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < cpu_ns);
}

// A child that has its parent's memory: burns, may send itself a signal, and exits with 7, or
// becomes /bin/true. Its status, or -1.
int vfork_child(long cpu_ns, int signal, int exec) {
    pid_t child = vfork();
    if (child == 0) {
        burn(cpu_ns);
        if (signal != 0) {
            kill(getpid(), signal);
        }
        if (exec) {
            execl("/bin/true", "true", (char *)NULL);
        }
        _exit(7);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

// A child with a copy of the memory: burns, allocates, may send itself a signal, and exits with 1
// if `flag` was set when it was made, else with 0.
pid_t fork_child(long cpu_ns, int signal, volatile unsigned *flag) {
    pid_t child = fork();
    if (child != 0) {
        return child;
    }
    unsigned was = *flag;
    burn(cpu_ns);
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(100 + i * 100);
        memset(block, 1, 100);
        free(block);
    }
    if (signal != 0) {
        kill(getpid(), signal);
    }
    _exit(was ? 1 : 0);
}

// A thread that has no thread pointer at all, as between a system call that makes a thread and
// the code that sets it up. It spins until `*stop`; `*tid` is its id, and 0 when it has ended.
long bare_thread(void *stack_end, int *tid, volatile int *stop) {
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    register long child_tid __asm__("r10") = (long)tid;
    register long thread_pointer __asm__("r8") = 0;
    register volatile int *stop_at __asm__("r12") = stop;
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n"
                     "0:\n\t"
                     "cmpl $0, (%%r12)\n\t"
                     "je 0b\n\t"
                     "mov $60, %%eax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "syscall\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(flags), "S"(stack_end), "d"(tid), "r"(child_tid),
                       "r"(thread_pointer), "r"(stop_at)
                     : "rcx", "r11", "memory");
    return result;
}
