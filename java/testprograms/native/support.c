/* What the Java language cannot do for itself: the CPU clock of whatever thread runs now, also
 * below a virtual thread, and libraries that are opened and closed at will. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jni.h>
#include <link.h>
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

/* Calls the library's function uint64_t NAME(uint64_t steps), which has to exist. */
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
