/* System calls that wait, as in programs in C: an interrupted call is not repeated here. Each waits
 * until its time is over, because nothing else ends it, except for the last one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <jni.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define WAIT_US 300

static const struct timespec wait = { 0, WAIT_US * 1000 };
static __thread int silent = -1, set = -1;
/* One thread writes to it and another one reads. */
static int ends[2] = { -1, -1 };

/* A socket without a writer; receiving from it ends after WAIT_US. */
static int silent_socket(void)
{
    struct timeval time = { 0, WAIT_US };
    int pair[2];
    if (silent < 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        silent = pair[0];
        setsockopt(silent, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    }
    return silent;
}

/* 0 for success and for the error of a wait whose time is over; else the error. */
static int outcome(long result, int planned)
{
    return result >= 0 || errno == planned ? 0 : errno;
}

static int by_poll(void)
{
    struct pollfd entry = { silent_socket(), POLLIN, 0 };
    return outcome(poll(&entry, 1, 1), 0);
}

static int by_epoll(void)
{
    struct epoll_event event;
    if (set < 0)
        set = epoll_create1(EPOLL_CLOEXEC);
    return outcome(epoll_wait(set, &event, 1, 1), 0);
}

static int by_select(void)
{
    struct timeval time = { 0, WAIT_US };
    return outcome(select(0, NULL, NULL, NULL, &time), 0);
}

static int by_nanosleep(void)
{
    return outcome(nanosleep(&wait, NULL), 0);
}

static int by_futex(void)
{
    static uint32_t word;
    return outcome(syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &wait, NULL, 0),
                   ETIMEDOUT);
}

static int by_recv(void)
{
    char byte;
    return outcome(recv(silent_socket(), &byte, 1, 0), EAGAIN);
}

/* The only call here that the kernel restarts after a handler with SA_RESTART. */
static int by_read(void)
{
    char byte;
    return outcome(read(ends[0], &byte, 1), 0);
}

JNIEXPORT jint JNICALL
Java_io_dwell_test_Blocking_call(JNIEnv *env, jclass type, jint number)
{
    static int (*const calls[])(void) = { by_poll,  by_epoll, by_select, by_nanosleep,
                                          by_futex, by_recv,  by_read };
    return calls[number]();
}

/* Ends a wait of the last call; creates its pipe at the first use. */
JNIEXPORT jint JNICALL
Java_io_dwell_test_Blocking_feed(JNIEnv *env, jclass type)
{
    if (ends[0] < 0 && pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    return outcome(write(ends[1], "x", 1), 0);
}
