/* A library that publishes the contexts of its threads by OpenTelemetry's OTEP 4947: with a
 * thread-local pointer to a record. */
#include <jni.h>
#include <stdint.h>
#include <string.h>

struct record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid;
    uint8_t trace_flags;
    uint16_t attrs_data_size;
};

__attribute__((visibility("default"))) __thread struct record *otel_thread_ctx_v1;

static __thread struct record own;

static void put(uint8_t *at, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(at, &value, sizeof value);
}

JNIEXPORT void JNICALL
Java_io_dwell_test_ThreadContexts_attach(JNIEnv *env, jclass type, jlong hi, jlong lo, jlong span)
{
    otel_thread_ctx_v1 = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    put(own.trace_id, (uint64_t)hi);
    put(own.trace_id + 8, (uint64_t)lo);
    put(own.span_id, (uint64_t)span);
    own.valid = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    otel_thread_ctx_v1 = &own;
}

JNIEXPORT void JNICALL
Java_io_dwell_test_ThreadContexts_detach(JNIEnv *env, jclass type)
{
    otel_thread_ctx_v1 = NULL;
}

/* A thread that keeps the record attached marks it instead. */
JNIEXPORT void JNICALL
Java_io_dwell_test_ThreadContexts_invalidate(JNIEnv *env, jclass type)
{
    own.valid = 0;
}
