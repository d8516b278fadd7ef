/* A JNI library whose work is done in a static function: only the full symbol table has it. */
#include "burn.h"
#include <jni.h>

static __attribute__((noinline)) uint64_t static_native_burn(uint64_t steps)
{
    return burn_steps(steps);
}

JNIEXPORT jlong JNICALL
Java_io_dwell_test_JniLoad_burnStatic(JNIEnv *env, jclass type, jlong steps)
{
    /* The addition keeps this from being a tail call: the frame has to exist. */
    return (jlong)static_native_burn((uint64_t)steps) + 1;
}
