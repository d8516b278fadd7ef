/* A JNI library whose work is done in an exported function of its own. */
#include "burn.h"
#include <jni.h>

__attribute__((noinline)) uint64_t exported_native_burn(uint64_t steps)
{
    return burn_steps(steps);
}

JNIEXPORT jlong JNICALL
Java_io_dwell_test_JniLoad_burnExported(JNIEnv *env, jclass type, jlong steps)
{
    /* The addition keeps this from being a tail call: the frame has to exist. */
    return (jlong)exported_native_burn((uint64_t)steps) + 1;
}
