/* Functions that Java lacks: the CPU clock of the current native thread, also below a virtual
 * thread, and libraries that are opened and closed on request. */
#define _GNU_SOURCE
#include "burn.h"
#include <dlfcn.h>
#include <jni.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

JNIEXPORT jlong JNICALL
Java_io_dwell_test_NativeSupport_threadCpuNanos(JNIEnv *env, jclass type)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (jlong)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The handle of the library, or 0. */
JNIEXPORT jlong JNICALL
Java_io_dwell_test_NativeSupport_open(JNIEnv *env, jclass type, jstring path)
{
    const char *chars = (*env)->GetStringUTFChars(env, path, NULL);
    void *handle;
    if (chars == NULL)
        return 0;
    handle = dlopen(chars, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        fprintf(stderr, "dlopen: %s\n", dlerror());
    (*env)->ReleaseStringUTFChars(env, path, chars);
    return (jlong)(intptr_t)handle;
}

JNIEXPORT jlong JNICALL
Java_io_dwell_test_NativeSupport_base(JNIEnv *env, jclass type, jlong handle)
{
    struct link_map *map = NULL;
    if (dlinfo((void *)(intptr_t)handle, RTLD_DI_LINKMAP, &map) != 0 || map == NULL)
        return 0;
    return (jlong)map->l_addr;
}

JNIEXPORT jboolean JNICALL
Java_io_dwell_test_NativeSupport_close(JNIEnv *env, jclass type, jlong handle)
{
    return dlclose((void *)(intptr_t)handle) == 0;
}

/* Calls the library's function uint64_t NAME(uint64_t steps), which must exist. */
JNIEXPORT jlong JNICALL
Java_io_dwell_test_NativeSupport_call(JNIEnv *env, jclass type, jlong handle, jstring name,
                                      jlong steps)
{
    const char *chars = (*env)->GetStringUTFChars(env, name, NULL);
    uint64_t (*function)(uint64_t);
    if (chars == NULL)
        return 0;
    *(void **)&function = dlsym((void *)(intptr_t)handle, chars);
    (*env)->ReleaseStringUTFChars(env, name, chars);
    return function == NULL ? -1 : (jlong)function((uint64_t)steps);
}

/* A native thread that calls Java now and then, and is attached only during the calls. */
struct attaching {
    JavaVM *vm;
    jclass type;
    jmethodID method;
    int64_t nanos;
    int64_t steps;
    int64_t calls;
    int64_t cpu_nanos;
};

static int64_t clock_nanos(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

__attribute__((noinline)) uint64_t detached_burn(int64_t steps)
{
    return burn_steps((uint64_t)steps);
}

static void *attach_and_detach(void *argument)
{
    struct attaching *own = argument;
    int64_t began = clock_nanos(CLOCK_MONOTONIC);
    while (clock_nanos(CLOCK_MONOTONIC) - began < own->nanos) {
        JNIEnv *env;
        if ((*own->vm)->AttachCurrentThread(own->vm, (void **)&env, NULL) != JNI_OK)
            break;
        (*env)->CallStaticVoidMethod(env, own->type, own->method);
        (*own->vm)->DetachCurrentThread(own->vm);
        detached_burn(own->steps);
        own->calls++;
    }
    own->cpu_nanos = clock_nanos(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* Runs such a thread for the given time. It calls type.call() again and again and burns the given
 * steps in between. Returns the number of calls, and the CPU time of the thread. */
JNIEXPORT jlongArray JNICALL
Java_io_dwell_test_NativeSupport_attachFor(JNIEnv *env, jclass self, jclass type, jlong nanos,
                                           jlong steps)
{
    struct attaching own = {0};
    jlongArray result = (*env)->NewLongArray(env, 2);
    jlong values[2];
    pthread_t thread;
    (*env)->GetJavaVM(env, &own.vm);
    own.type = (*env)->NewGlobalRef(env, type);
    own.method = (*env)->GetStaticMethodID(env, type, "call", "()V");
    own.nanos = nanos;
    own.steps = steps;
    if (result == NULL || own.method == NULL)
        return NULL;
    if (pthread_create(&thread, NULL, attach_and_detach, &own) != 0)
        return NULL;
    pthread_join(thread, NULL);
    (*env)->DeleteGlobalRef(env, own.type);
    values[0] = own.calls;
    values[1] = own.cpu_nanos;
    (*env)->SetLongArrayRegion(env, result, 0, 2, values);
    return result;
}
