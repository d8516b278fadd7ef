/* Native threads that are hard to sample: inside malloc, short-lived, at their end, on other
 * stacks. Each function returns the number of errors. */
#include "chaos.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define BLOCKS 64
#define ALT_STACK (64 * 1024)

/* Each block is filled with its own number, so that a block with two owners is noticed. */
static void *churn_malloc(void *argument)
{
    unsigned char *blocks[BLOCKS] = {0};
    size_t sizes[BLOCKS] = {0};
    uint64_t x = (uint64_t)(intptr_t)argument + 99;
    intptr_t errors = 0;
    for (int i = 0; i < 3000; i++) {
        x = work_there(x, 1);
        int at = (int)(x >> 33) % BLOCKS;
        for (size_t k = 0; k < sizes[at]; k += 97)
            errors += blocks[at][k] != (unsigned char)at;
        sizes[at] = 1 + ((x >> 40) & ((i & 127) == 0 ? 0x3ffff : 0x7ff));
        unsigned char *block = realloc(blocks[at], sizes[at]);
        if (block == NULL) {
            free(blocks[at]);
            sizes[at] = 0;
        } else {
            memset(block, at, sizes[at]);
        }
        blocks[at] = block;
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return (void *)errors;
}

NATIVE(jint, mallocs)(JNIEnv *env, jclass type, jint threads)
{
    return chaos_on_threads(threads, churn_malloc);
}

static void *attach_and_detach(void *argument)
{
    intptr_t errors = 0;
    for (int i = 0; i < 5; i++) {
        JNIEnv *env = NULL;
        if ((*chaos_vm)->AttachCurrentThread(chaos_vm, (void **)&env, NULL) != JNI_OK)
            continue;
        jlong there = (jlong)work_there(5, 20 * 3);
        jlong back = (*env)->CallStaticLongMethod(env, chaos_natives, chaos_down, 2, (jlong)5);
        /* A lack of memory is not an error here. */
        if ((*env)->ExceptionCheck(env))
            (*env)->ExceptionClear(env);
        else
            errors += there != back;
        (*chaos_vm)->DetachCurrentThread(chaos_vm);
        work_there(5, 1000);
    }
    return (void *)errors;
}

NATIVE(jint, attaches)(JNIEnv *env, jclass type, jint threads)
{
    return chaos_on_threads(threads, attach_and_detach);
}

/* Signals are pending on a thread that blocks all of them while it works, and then it ends. */
static void *end_while_pending(void *argument)
{
    sigset_t all;
    uint64_t begin = chaos_thread_cpu_ns(), x = 7;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (chaos_thread_cpu_ns() - begin < 2000000)
        x = work_there(x, 50);
    if ((intptr_t)argument % 2 == 0) {
        sigemptyset(&all);
        pthread_sigmask(SIG_SETMASK, &all, NULL);
    }
    pthread_exit((void *)(intptr_t)(x == 0));
}

NATIVE(jint, ends)(JNIEnv *env, jclass type, jint threads)
{
    return chaos_on_threads(threads, end_while_pending);
}

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static atomic_long destroyed;

static void destroy(void *value)
{
    uint64_t begin = chaos_thread_cpu_ns(), x = 7;
    while (chaos_thread_cpu_ns() - begin < 500000)
        x = work_there(x, 50);
    free(value);
    JNIEnv *env;
    /* This destructor detaches half of the threads. */
    if ((*chaos_vm)->GetEnv(chaos_vm, (void **)&env, JNI_VERSION_1_8) == JNI_OK)
        (*chaos_vm)->DetachCurrentThread(chaos_vm);
    atomic_fetch_add(&destroyed, 1);
}

static void make_key(void)
{
    pthread_key_create(&key, destroy);
}

static atomic_long used_key;

static void *use_key(void *argument)
{
    JNIEnv *env = NULL;
    pthread_once(&key_once, make_key);
    if ((intptr_t)argument % 2 == 0)
        (*chaos_vm)->AttachCurrentThreadAsDaemon(chaos_vm, (void **)&env, NULL);
    if (pthread_setspecific(key, malloc(100)) == 0)
        atomic_fetch_add(&used_key, 1);
    return NULL;
}

NATIVE(jint, locals)(JNIEnv *env, jclass type, jint threads)
{
    int errors = chaos_on_threads(threads, use_key);
    /* Joined threads have run their destructors. */
    return errors + (atomic_load(&destroyed) != atomic_load(&used_key));
}

static void on_other_stack(int signal)
{
    (void)signal;
    uint64_t begin = chaos_thread_cpu_ns(), x = 7;
    while (chaos_thread_cpu_ns() - begin < 1000000)
        x = work_there(x, 50);
}

static void *work_on_alternate_stack(void *argument)
{
    stack_t stack = {.ss_sp = malloc(ALT_STACK), .ss_size = ALT_STACK}, none = {
        .ss_flags = SS_DISABLE};
    if (stack.ss_sp == NULL)
        return NULL;
    sigaltstack(&stack, NULL);
    for (int i = 0; i < 3; i++)
        raise(SIGRTMIN + 6);
    sigaltstack(&none, NULL);
    free(stack.ss_sp);
    return NULL;
}

struct coroutine {
    ucontext_t caller, own;
    uint64_t x;
    int rounds;
};

static void coroutine_body(unsigned int low, unsigned int high)
{
    struct coroutine *self = (struct coroutine *)(((uintptr_t)high << 32) | low);
    for (;;) {
        self->x = work_there(self->x, 2000);
        self->rounds++;
        swapcontext(&self->own, &self->caller);
    }
}

static void *work_in_coroutines(void *argument)
{
    struct coroutine coroutine = {.x = 3};
    uint64_t expected = work_there(3, 2000 * 100);
    void *stack = mmap(NULL, ALT_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    getcontext(&coroutine.own);
    coroutine.own.uc_stack.ss_sp = stack;
    coroutine.own.uc_stack.ss_size = ALT_STACK;
    uintptr_t self = (uintptr_t)&coroutine;
    makecontext(&coroutine.own, (void (*)(void))coroutine_body, 2, (unsigned int)self,
                (unsigned int)(self >> 32));
    while (coroutine.rounds < 100)
        swapcontext(&coroutine.caller, &coroutine.own);
    munmap(stack, ALT_STACK);
    return (void *)(intptr_t)(coroutine.x != expected);
}

NATIVE(jint, stacks)(JNIEnv *env, jclass type, jint threads)
{
    struct sigaction action = {.sa_handler = on_other_stack, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGRTMIN + 6, &action, NULL);
    return chaos_on_threads(threads, work_on_alternate_stack)
        + chaos_on_threads(threads, work_in_coroutines);
}
