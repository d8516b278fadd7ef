/* JNI calls of all kinds, libraries that are loaded and unloaded, and child processes. */
#include "chaos.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

JavaVM *chaos_vm;
jclass chaos_natives;
jmethodID chaos_down;

extern char **environ;

NATIVE(void, prepare)(JNIEnv *env, jclass type)
{
    (*env)->GetJavaVM(env, &chaos_vm);
    chaos_natives = (*env)->NewGlobalRef(env, type);
    chaos_down = (*env)->GetStaticMethodID(env, type, "down", "(IJ)J");
}

int chaos_on_threads(int threads, void *(*function)(void *))
{
    pthread_t ids[64];
    int made[64] = {0}, errors = 0;
    for (int i = 0; i < threads && i < 64; i++)
        made[i] = pthread_create(&ids[i], NULL, function, (void *)(intptr_t)i) == 0;
    for (int i = 0; i < threads && i < 64; i++) {
        void *result = NULL;
        if (made[i]) {
            pthread_join(ids[i], &result);
            errors += (int)(intptr_t)result;
        }
    }
    return errors;
}

NATIVE(jlong, there)(JNIEnv *env, jclass type, jlong x, jint steps)
{
    return (jlong)work_there((uint64_t)x, steps);
}

/* Java and this function call each other, until depth is 0. */
NATIVE(jlong, up)(JNIEnv *env, jclass type, jint depth, jlong x)
{
    x = (jlong)work_there((uint64_t)x, 20);
    if (depth == 0)
        return x;
    return (*env)->CallStaticLongMethod(env, type, chaos_down, depth - 1, x);
}

NATIVE(jlong, critical)(JNIEnv *env, jclass type, jlongArray array)
{
    jsize length = (*env)->GetArrayLength(env, array);
    jlong sum = 0;
    jlong *elements = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
    if (elements == NULL)
        return 0;
    for (jsize i = 0; i < length; i++) {
        sum += elements[i];
        elements[i] = (jlong)work_there((uint64_t)elements[i], 4);
    }
    (*env)->ReleasePrimitiveArrayCritical(env, array, elements, 0);
    return sum;
}

NATIVE(void, fail)(JNIEnv *env, jclass type, jstring text)
{
    jclass error = (*env)->FindClass(env, "java/lang/IllegalStateException");
    const char *chars = (*env)->GetStringUTFChars(env, text, NULL);
    if (error != NULL && chars != NULL)
        (*env)->ThrowNew(env, error, chars);
    if (chars != NULL)
        (*env)->ReleaseStringUTFChars(env, text, chars);
}

NATIVE(jlong, plugin)(JNIEnv *env, jclass type, jstring path, jlong x, jint steps)
{
    const char *chars = (*env)->GetStringUTFChars(env, path, NULL);
    uint64_t (*run)(uint64_t, int);
    jlong result = 0;
    if (chars == NULL)
        return 0;
    void *handle = dlopen(chars, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "dlopen: %s\n", dlerror());
    } else {
        *(void **)&run = dlsym(handle, "plugin_run");
        result = (jlong)run((uint64_t)x, steps);
        dlclose(handle);
    }
    (*env)->ReleaseStringUTFChars(env, path, chars);
    return result;
}

/* The exit code of a child by fork (which works a while), vfork or posix_spawn; -1 if it could not
 * be started. */
NATIVE(jint, child)(JNIEnv *env, jclass type, jint kind)
{
    char *words[] = {"/bin/sh", "-c", "exit 7", NULL};
    pid_t pid = -1;
    int status = 0;
    if (kind == 0) {
        pid = fork();
        if (pid == 0) {
            uint64_t begin = chaos_thread_cpu_ns(), x = 1;
            while (chaos_thread_cpu_ns() - begin < 3000000)
                x = work_there(x, 100);
            _exit(x == 0 ? 1 : 7);
        }
    } else if (kind == 1) {
        pid = vfork();
        if (pid == 0) {
            execve(words[0], words, environ);
            _exit(1);
        }
    } else if (posix_spawn(&pid, words[0], NULL, NULL, words, environ) != 0) {
        pid = -1;
    }
    if (pid < 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -2;
    /* A child that a signal has ended must not look like a successful one. */
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
