/*
 * The kernel's cost of a sample, part by part: an agent that opens a cpu-clock perf event on each
 * thread of its process and ignores the samples. bench/floors loads it again and
 * again into one warm JVM: `start,FORM,period_ns,FILE` and `stop`, which writes counts to the file.
 *
 * FORM:
 * - count: no samples;
 * - bare: a sample in a ring: time, thread, instruction;
 * - woken: bare, and a thread that waits for the ring is woken for each sample;
 * - regs: bare with the registers and the kernel's frames;
 * - stackN: regs with N KiB of the stack;
 * - readN: stackN, and a thread of the agent copies each sample once more, every 20 ms;
 * - signal: a signal for each sample, whose handler returns;
 * - trap: the same with the kernel's own signal of perf events, SIGTRAP.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jvmti.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, EVENTS_MAX = 4096, RING_PAGES = 512, SMALL_RING_PAGES = 8, SLOTS = 64 };
/* As dwell keeps them: ax, bx, cx, dx, bp, sp, ip, r13 (asm/perf_regs.h). */
static const uint64_t REGISTERS = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 7 | 1u << 8
    | 1u << 21;

struct event {
    int fd;
    char *ring; /* none: MAP_FAILED */
    size_t data_bytes;
};

static struct event events[EVENTS_MAX];
static int count;
static char form[32], path[4096];
static long period_ns;
static uint32_t stack_bytes;
static int reads, refused;
static atomic_int stopping;
static pthread_t reader;
static atomic_ulong handled;
/* Of the reader. */
static unsigned long samples, copied, lost, reader_ns, deep;
static char *slots;

static void on_signal(int signal, siginfo_t *info, void *context)
{
    atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
}

static int sampling_signal(void) { return SIGRTMIN + 9; }

static int open_event(int tid)
{
    struct perf_event_attr attr = {.size = sizeof attr, .type = PERF_TYPE_SOFTWARE};
    int is_signal = !strcmp(form, "signal"), is_trap = !strcmp(form, "trap");
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.exclude_hv = 1;
    attr.disabled = is_signal;
    if (strcmp(form, "count")) {
        attr.sample_period = (uint64_t)period_ns;
        attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
        attr.use_clockid = 1;
        attr.clockid = CLOCK_MONOTONIC;
        attr.watermark = 1;
        attr.wakeup_watermark = 1u << 30;
    }
    if (is_signal || !strcmp(form, "woken")) {
        attr.watermark = 0;
        attr.wakeup_watermark = 1;
    }
    attr.sigtrap = attr.remove_on_exec = is_trap;
    if (stack_bytes || !strcmp(form, "regs")) {
        attr.sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER;
        attr.exclude_callchain_user = 1;
        attr.sample_regs_user = REGISTERS;
    }
    if (stack_bytes) {
        attr.sample_type |= PERF_SAMPLE_STACK_USER;
        attr.sample_stack_user = stack_bytes;
    }
    int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0 && is_signal) {
        struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid};
        fcntl(fd, F_SETSIG, sampling_signal());
        fcntl(fd, F_SETOWN_EX, &owner);
        fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
        ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    }
    return fd;
}

static void add(int tid)
{
    if (count == EVENTS_MAX)
        return;
    struct event *event = &events[count];
    event->fd = open_event(tid);
    event->ring = MAP_FAILED;
    if (event->fd < 0) {
        refused++;
        return;
    }
    count++;
    if (!strcmp(form, "signal") || !strcmp(form, "trap") || !strcmp(form, "count"))
        return;
    event->data_bytes = (size_t)PAGE * (stack_bytes ? RING_PAGES : SMALL_RING_PAGES);
    /* Without a reader the oldest samples are overwritten: mapped only to be read. */
    int access = reads ? PROT_READ | PROT_WRITE : PROT_READ;
    event->ring = mmap(NULL, event->data_bytes + PAGE, access, MAP_SHARED, event->fd, 0);
    refused += event->ring == MAP_FAILED;
}

static void ring_copy(const struct event *event, uint64_t at, void *to, size_t len)
{
    size_t offset = at & (event->data_bytes - 1);
    size_t first = len < event->data_bytes - offset ? len : event->data_bytes - offset;
    memcpy(to, event->ring + PAGE + offset, first);
    memcpy((char *)to + first, event->ring + PAGE, len - first);
}

/* Copies a sample's stack, as much as there is of it, and its first words. */
static void take(const struct event *event, uint64_t at, size_t len)
{
    char *slot = slots + (samples % SLOTS) * (1 << 16);
    uint64_t there = 0;
    size_t head = len - stack_bytes - 8;
    ring_copy(event, at, slot, head);
    ring_copy(event, at + len - 8, &there, 8);
    if (there > stack_bytes)
        there = 0;
    ring_copy(event, at + head, slot + head, there);
    samples++;
    copied += there;
    deep += there == stack_bytes;
}

static void drain(const struct event *event)
{
    struct perf_event_mmap_page *page = (void *)event->ring;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
    while (tail < head) {
        struct perf_event_header header;
        ring_copy(event, tail, &header, sizeof header);
        if (header.size < sizeof header)
            break;
        uint64_t words[3];
        if (header.type == PERF_RECORD_SAMPLE) {
            take(event, tail, header.size);
        } else if (header.type == PERF_RECORD_LOST) {
            ring_copy(event, tail, words, sizeof words);
            lost += words[2];
        }
        tail += header.size;
    }
    __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

static void *read_all(void *nothing)
{
    prctl(PR_SET_NAME, "floors-reader");
    while (!atomic_load(&stopping)) {
        usleep(20000);
        for (int i = 0; i < count; i++)
            if (events[i].ring != MAP_FAILED)
                drain(&events[i]);
    }
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    reader_ns = (unsigned long)used.tv_sec * 1000000000ul + (unsigned long)used.tv_nsec;
    return nothing;
}

static void begin(void)
{
    stack_bytes = 0;
    reads = !strncmp(form, "read", 4);
    if (reads || !strncmp(form, "stack", 5))
        stack_bytes = (uint32_t)atoi(form + (reads ? 4 : 5)) << 10;
    samples = copied = lost = reader_ns = deep = 0;
    count = refused = 0;
    atomic_store(&handled, 0);
    atomic_store(&stopping, 0);
    if (!strcmp(form, "signal") || !strcmp(form, "trap")) {
        struct sigaction action = {.sa_sigaction = on_signal,
                                   .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
        sigaction(!strcmp(form, "trap") ? SIGTRAP : sampling_signal(), &action, NULL);
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));)
        if (atoi(entry->d_name))
            add(atoi(entry->d_name));
    if (tasks)
        closedir(tasks);
    if (reads) {
        if (!slots)
            slots = calloc(SLOTS, 1 << 16);
        pthread_create(&reader, NULL, read_all, NULL);
    }
}

static void end(void)
{
    unsigned long went_off = 0, ring_bytes = 0;
    if (reads) {
        atomic_store(&stopping, 1);
        pthread_join(reader, NULL);
    }
    for (int i = 0; i < count; i++) {
        unsigned long value = 0;
        ioctl(events[i].fd, PERF_EVENT_IOC_DISABLE, 0);
        if (read(events[i].fd, &value, sizeof value) == sizeof value)
            went_off += value / (unsigned long)period_ns;
        if (events[i].ring != MAP_FAILED) {
            ring_bytes += ((struct perf_event_mmap_page *)events[i].ring)->data_head;
            munmap(events[i].ring, events[i].data_bytes + PAGE);
        }
        close(events[i].fd);
    }
    /* Signals that were pending have come by now, or are ignored. */
    FILE *out = fopen(path, "w");
    if (out) {
        fprintf(out,
                "{\"events\":%d,\"refused\":%d,\"periods\":%lu,\"ring_bytes\":%lu,\"handled\":%lu,"
                "\"samples\":%lu,\"copied\":%lu,\"whole\":%lu,\"lost\":%lu,\"reader_ns\":%lu}\n",
                count, refused, went_off, ring_bytes, atomic_load(&handled), samples, copied,
                samples - deep, lost, reader_ns);
        fclose(out);
    }
    count = 0;
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    if (!strcmp(options, "stop")) {
        end();
        return 0;
    }
    if (sscanf(options, "start,%31[^,],%ld,%4095s", form, &period_ns, path) != 3)
        return 1;
    begin();
    return 0;
}
