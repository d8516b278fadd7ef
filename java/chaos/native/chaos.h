/* Functions shared by the native antagonists. */
#ifndef DWELL_CHAOS_H
#define DWELL_CHAOS_H
#define _GNU_SOURCE
#include <errno.h>
#include <jni.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_io_dwell_chaos_Natives_##name

extern JavaVM *chaos_vm;
extern jclass chaos_natives;
extern jmethodID chaos_down;

static inline uint64_t chaos_thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Runs a function on the given number of new threads, with the index as argument. Returns the sum
 * of their results (numbers of errors). A thread that cannot be created does not count. */
int chaos_on_threads(int threads, void *(*function)(void *));
#endif
