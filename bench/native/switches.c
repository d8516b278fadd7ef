/*
 * The cost of a perf event for a thread at each switch: two threads on one processor hand a token to
 * each other, so that each hand-over is a switch. bench/switches runs it.
 *
 * usage: switches pipe|futex|apart ROUND_TRIPS FORM
 * prints the CPU time of a hand-over in ns (of both), and how many perf events there were. With
 * "apart" the other one is another process that has no event, and they use pipes.
 *
 * FORM: none, or words joined by "+":
 *   cpu, task, dummy, switches   the event: cpu-clock, task-clock, dummy, context switches
 *   count                        it only counts; else it samples every 10 ms,
 *   1ms 100s freq                every ms, every 100 s, 100 times a second by frequency
 *   user                         exclude_kernel; idle, hv, guest: exclude_idle, ...
 *   pinned, off                  pinned; disabled at once
 *   inherit                      opened once, before the threads are there
 *   cpus                         one for each thread and processor; with inherit, one for each
 *                                processor
 *   page, ring                   the control page is mapped, or a ring of 64 pages
 *   stack                        with registers and 16 KiB of the stack (with ring)
 *   trap                         a SIGTRAP on the thread itself for each sample (attr.sigtrap)
 *   timer                        no event: a CPU timer of 10 ms on each thread
 *   everywhere                   one for each processor, for any thread there (needs privileges)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int pipes[2][2], by_pipe, apart, opened;
static long trips;
static const char *form;
static int tids[2];
static pthread_barrier_t ready, armed;
static _Atomic int turn;

static int is(const char *word)
{
    const char *at = form;
    size_t len = strlen(word);
    while ((at = strstr(at, word))) {
        int begins = at == form || at[-1] == '+', ends = !at[len] || at[len] == '+';
        if (begins && ends)
            return 1;
        at += len;
    }
    return 0;
}

static void fail(const char *what)
{
    printf("refused %s: %s\n", what, strerror(errno));
    exit(1);
}

static void map(int fd, int pages)
{
    if (mmap(NULL, (size_t)(pages + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
        == MAP_FAILED)
        fail("mapping");
}

static void open_one(int tid, int cpu)
{
    struct perf_event_attr attr = {.size = sizeof attr, .type = PERF_TYPE_SOFTWARE};
    attr.config = is("task") ? PERF_COUNT_SW_TASK_CLOCK
        : is("dummy") ? PERF_COUNT_SW_DUMMY
        : is("switches") ? PERF_COUNT_SW_CONTEXT_SWITCHES : PERF_COUNT_SW_CPU_CLOCK;
    if (!is("count") && !is("dummy") && !is("switches")) {
        attr.sample_period = is("1ms") ? 1000000 : is("100s") ? 100000000000 : 10000000;
        if (is("freq")) {
            attr.freq = 1;
            attr.sample_freq = 100;
        }
        attr.sample_type = PERF_SAMPLE_IP;
    }
    if (is("stack")) {
        attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr.sample_regs_user = 1 << 7 | 1 << 8;
        attr.sample_stack_user = 16384;
    }
    attr.exclude_kernel = is("user");
    attr.exclude_idle = is("idle");
    attr.exclude_hv = is("hv");
    attr.exclude_guest = is("guest");
    attr.pinned = is("pinned");
    attr.sigtrap = attr.remove_on_exec = is("trap");
    attr.inherit = is("inherit");
    attr.inherit_thread = is("inherit");
    int fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        fail("event");
    opened++;
    if (is("page"))
        map(fd, 0);
    if (is("ring"))
        map(fd, 64);
    if (is("off"))
        ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void open_all(int tid)
{
    int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (is("timer")) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
        event._sigev_un._tid = tid;
        timer_t timer;
        struct itimerspec every = {{0, 10000000}, {0, 10000000}};
        clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6);
        if (timer_create(clock, &event, &timer) || timer_settime(timer, 0, &every, NULL))
            fail("timer");
    } else if (is("cpus") || is("everywhere")) {
        for (int cpu = 0; cpu < processors; cpu++)
            open_one(tid, cpu);
    } else {
        open_one(tid, -1);
    }
}

static void give(int me)
{
    if (by_pipe) {
        if (write(pipes[me][1], "x", 1) != 1)
            fail("writing");
        return;
    }
    turn = !me;
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void await(int me)
{
    char byte;
    if (by_pipe) {
        if (read(pipes[!me][0], &byte, 1) != 1)
            fail("reading");
        return;
    }
    while (turn != me)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !me, NULL, NULL, 0);
}

static void on_signal(int number) { (void)number; }

static void *work(void *number)
{
    int me = (int)(intptr_t)number;
    tids[me] = gettid();
    if (!apart || me == 0) {
        pthread_barrier_wait(&ready);
        pthread_barrier_wait(&armed);
    }
    for (long i = 0; i < trips; i++) {
        if (me == 0)
            give(me);
        await(me);
        if (me == 1)
            give(me);
    }
    return NULL;
}

static long used_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    struct rusage child;
    getrusage(RUSAGE_CHILDREN, &child);
    return (used.tv_sec + child.ru_utime.tv_sec + child.ru_stime.tv_sec) * 1000000000l
        + used.tv_nsec + (child.ru_utime.tv_usec + child.ru_stime.tv_usec) * 1000l;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    apart = !strcmp(words[1], "apart");
    by_pipe = apart || !strcmp(words[1], "pipe");
    int parties = apart ? 1 : 2;
    trips = atol(words[2]);
    form = words[3];
    signal(SIGUSR1, on_signal);
    signal(SIGTRAP, on_signal);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_barrier_init(&ready, NULL, (unsigned)parties + 1);
    pthread_barrier_init(&armed, NULL, (unsigned)parties + 1);
    int none = is("none"), first = is("inherit");
    if (pipe(pipes[0]) || pipe(pipes[1]))
        fail("pipe");
    if (apart && !fork()) {
        work((void *)1);
        _exit(0);
    }
    if (first)
        open_all(0);
    if (is("everywhere"))
        open_all(-1);
    pthread_t threads[2];
    for (intptr_t i = 0; i < parties; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    pthread_barrier_wait(&ready);
    if (!none && !first && !is("everywhere"))
        for (int i = 0; i < parties; i++)
            open_all(tids[i]);
    long before = used_ns();
    pthread_barrier_wait(&armed);
    for (int i = 0; i < parties; i++)
        pthread_join(threads[i], NULL);
    if (apart)
        wait(NULL);
    printf("%ld %d\n", (used_ns() - before) / (2 * trips), opened);
    return 0;
}
