#!/usr/bin/env bash
# Builds the Java parts into target/java/: the demo, the test programs, their native libraries, the
# recording checker and the examples. Incremental by timestamps; one line per step. Needs a JDK >= 11
# with javac (>= 21 for the classes that use virtual threads) and cc for the native libraries.
#
# usage: java/build.sh            build what is out of date
#        java/build.sh --jdk MAJOR|MIN+   print the home of such a JDK (17, or 21+) and exit
#        java/build.sh --jmc      build target/java/dwell-verify-jmc.jar, which only tests need, with
#                                 the parser of JDK Mission Control: downloaded once from Maven
#                                 Central, or the mirror DWELL_MAVEN, into DWELL_JARS (default
#                                 ~/.cache/dwell-jars). Needs a JDK >= 17.
#        java/build.sh --jfrconv  put async-profiler's converter, which only tests need, into
#                                 target/java/jfrconv, downloaded in the same way
#        java/build.sh --otel     build target/java/dwell-opentelemetry.jar, and a program for its
#                                 tests, against OpenTelemetry's jars, downloaded in the same way
#        java/build.sh --jmh      build target/java/dwell-jmh.jar against JMH, downloaded in the same way
#        java/build.sh --vertx    build target/java/dwell-fileserver.jar, an example, with Vert.x
# JDKs are searched in JAVA_HOME, PATH, DWELL_JDKS/* (default ~/.cache/dwell-jdks/*) and
# /usr/lib/jvm/*.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(cd "$here/.." && pwd)/target/java

fail() { echo "java/build.sh: $*" >&2; exit 1; }

# Major version of the JDK at $1, from its release file or, in its absence, from javac itself.
jdk_major() {
    local version
    version=$(sed -n 's/^JAVA_VERSION="\([^"]*\)".*/\1/p' "$1/release" 2>/dev/null || true)
    [ -n "$version" ] || version=$("$1/bin/javac" -version 2>&1 | sed -n 's/^javac //p')
    version=${version#1.}
    echo "${version%%[!0-9]*}"
}

# Homes of all JDKs with a javac, in order of preference, each once.
jdk_homes() {
    local home path_javac seen=:
    path_javac=$(command -v javac || true)
    for home in "${JAVA_HOME:-}" "${path_javac:+$(dirname "$(dirname "$(readlink -f \
        "${path_javac:-/}")")")}" "${DWELL_JDKS:-$HOME/.cache/dwell-jdks}"/* /usr/lib/jvm/*; do
        [ -n "$home" ] && [ -x "$home/bin/javac" ] || continue
        home=$(readlink -f "$home")
        case $seen in *":$home:"*) continue ;; esac
        seen=$seen$home:
        echo "$home"
    done
}

# The first JDK whose major version is $1, or MIN and later if $1 is "MIN+".
find_jdk() {
    local home major
    while read -r home; do
        major=$(jdk_major "$home")
        [ -n "$major" ] || continue
        case $1 in
            *+) [ "$major" -ge "${1%+}" ] || continue ;;
            *) [ "$major" -eq "$1" ] || continue ;;
        esac
        echo "$home"
        return 0
    done < <(jdk_homes)
    return 1
}

# True when $1 is missing or older than any of the files or folders that follow.
outdated() {
    local target=$1
    shift
    [ -e "$target" ] || return 0
    [ -n "$(find "$@" "$here/build.sh" -newer "$target" -print -quit)" ]
}

# build_jar NAME JDK RELEASE MAIN-CLASS CLASSPATH SOURCES: compiles folders of sources, divided by
# colons, into a jar.
# An empty main class makes a jar that is not executable.
build_jar() {
    local target=$out/$1 jdk=$2 release=$3 main=$4 classpath=$5 sources=$6 tmp jars dirs
    IFS=: read -ra jars <<<"$classpath"
    IFS=: read -ra dirs <<<"$sources"
    if ! outdated "$target" "${dirs[@]}" "${jars[@]}"; then
        echo "$1: up to date"
        return
    fi
    tmp=$(mktemp -d "$out/.build.XXXXXX")
    find "${dirs[@]}" -name '*.java' >"$tmp/sources"
    # Warnings about the class files of libraries are not ours to fix.
    "$jdk/bin/javac" --release "$release" -Xlint:all,-options,-serial,-try,-classfile,-processing \
        -Werror -g -encoding UTF-8 \
        ${classpath:+-cp "$classpath"} -d "$tmp/classes" "@$tmp/sources" ||
        { rm -rf "$tmp"; fail "$1 does not compile"; }
    # A jar that was compiled against others names them in its manifest, so that it can run alone. A
    # line of a manifest is short; a blank continues it.
    : >"$tmp/manifest"
    # With $provided the user has them, maybe newer ones.
    [ ${#jars[@]} = 0 ] || [ -n "${provided:-}" ] ||
        { echo "Class-Path: " && printf '  %s\n' "${jars[@]#"$out/"}"; } >"$tmp/manifest"
    "$jdk/bin/jar" --create --file "$tmp/jar" --manifest "$tmp/manifest" \
        ${main:+--main-class "$main"} -C "$tmp/classes" .
    # Renamed into place, so that a JVM that reads the old jar is not disturbed.
    mv "$tmp/jar" "$target"
    rm -rf "$tmp"
    echo "$1: built with JDK $(jdk_major "$jdk") for release $release"
}

# build_library NAME JDK [SOURCE FLAG...]: compiles testprograms/native/SOURCE.c (or NAME.c).
# Optimised and without frame pointers, as libraries are, but with symbols.
build_library() {
    local name=${3:-$1} jdk=$2 flags=("${@:4}") native=$here/testprograms/native target
    target=$out/libdwelltest_$1.so
    if ! outdated "$target" "$native/$name.c" "$native/burn.h"; then
        echo "${target##*/}: up to date"
        return
    fi
    cc -O2 -g -fomit-frame-pointer -shared -fPIC -Wall -Wextra -Wno-unused-parameter -Werror \
        ${flags[@]+"${flags[@]}"} -I"$jdk/include" -I"$jdk/include/linux" \
        -o "$target.$$" "$native/$name.c" ||
        fail "${target##*/} does not compile"
    mv "$target.$$" "$target"
    echo "${target##*/}: built"
}

# The parser of JDK Mission Control and its dependencies: path in a Maven repository, SHA-256.
jmc_jars="\
org/openjdk/jmc/flightrecorder/9.1.2/flightrecorder-9.1.2.jar \
103e6ef83c09329fc59f18a1556e120c38d7faba6cbff13d910c1693312aad57
org/openjdk/jmc/common/9.1.2/common-9.1.2.jar \
e806dc549015997df1fe49ac0db0676c641587e3c9711d03d522f042f1d961fd
org/owasp/encoder/encoder/1.2.3/encoder-1.2.3.jar \
b09e2cd5c36a7127e091df9be628278b1166b40bc08b9de8196ccddb0cccd67f
at/yawk/lz4/lz4-java/1.10.2/lz4-java-1.10.2.jar \
252dabd586d22149a31661a8afc1a50747714eb1a298bd4a6e780c8c91a13866"

# has_sum FILE SHA256: whether the file exists and has this checksum.
has_sum() {
    [ -e "$1" ] && [ "$(sha256sum <"$1")" = "$2  -" ]
}

# download URL FILE: with the tool that is installed.
download() {
    if command -v curl >/dev/null; then
        curl -sSfL --retry 3 --connect-timeout 20 --max-time 300 -o "$2" "$1"
    elif command -v wget >/dev/null; then
        wget -nv -T 60 -t 3 -O "$2" "$1"
    else
        echo "neither curl nor wget is there" >&2
        return 1
    fi
}

# fetch FOLDER PATH SHA256: makes sure that a jar of a Maven repository is in the cache and in that
# folder of target/java.
fetch() {
    local folder=$out/$1
    shift
    local jar=${1##*/} cache=${DWELL_JARS:-$HOME/.cache/dwell-jars} url
    if ! has_sum "$cache/$jar" "$2"; then
        url=${DWELL_MAVEN:-https://repo.maven.apache.org/maven2}/$1
        mkdir -p "$cache"
        download "$url" "$cache/$jar.$$" ||
            { rm -f "$cache/$jar.$$"; fail "cannot download $url; put that file into $cache, or" \
                "name a mirror of Maven Central as DWELL_MAVEN"; }
        has_sum "$cache/$jar.$$" "$2" ||
            { rm -f "$cache/$jar.$$"; fail "$url is not the file that is meant: its SHA-256" \
                "is not $2"; }
        mv "$cache/$jar.$$" "$cache/$jar"
        echo "$jar: downloaded"
    fi
    has_sum "$folder/$jar" "$2" || cp "$cache/$jar" "$folder/$jar"
}

build_jmc() {
    local jdk path sum classpath=
    jdk=$(find_jdk 17+) || fail "no JDK >= 17 with javac found; set JAVA_HOME or DWELL_JDKS"
    mkdir -p "$out/jmc"
    while read -r path sum; do
        fetch jmc "$path" "$sum"
        classpath=$classpath${classpath:+:}$out/jmc/${path##*/}
    done <<<"$jmc_jars"
    build_jar dwell-verify-jmc.jar "$jdk" 17 io.dwell.verify.jmc.Compare "$classpath" \
        "$here/verify/src-jmc"
}

# async-profiler's converter of recordings: a reader that many tools use.
jfrconv_jar="tools/profiler/jfr-converter/4.5/jfr-converter-4.5.jar \
d8a5452b26adb11a2a0abf0c53799a6fd60dbccb0647efa5a734e3c46ced3df4"

# OpenTelemetry's API and SDK, as far as tracing needs them.
otel_jars="\
io/opentelemetry/opentelemetry-api/1.49.0/opentelemetry-api-1.49.0.jar \
a813c9a92b82a4ffa3a62e88216a9e9ef9a407fcd41614fe596b2895167ed638
io/opentelemetry/opentelemetry-context/1.49.0/opentelemetry-context-1.49.0.jar \
17de3c85b341240b3b216c43adbd244c9fbd39c9e5448306d56460f80599a76b
io/opentelemetry/opentelemetry-sdk-trace/1.49.0/opentelemetry-sdk-trace-1.49.0.jar \
483bf21dde1df1a2c9875ba7dff1e3c8c1a63789cd45ad58223ec64b5951318e
io/opentelemetry/opentelemetry-sdk-common/1.49.0/opentelemetry-sdk-common-1.49.0.jar \
b06214ccf3cda749edcd426c1492483e201e1fcfadb9f9cba8ecb439ff5c5d0f"

build_otel() {
    local jdk path sum classpath=$out/dwell-api.jar
    jdk=$(find_jdk 11+) || fail "no JDK >= 11 with javac found; set JAVA_HOME or DWELL_JDKS"
    build_jar dwell-api.jar "$jdk" 8 "" "" "$here/api/src"
    build_jar dwell-testprograms.jar "$jdk" 8 "" "$out/dwell-api.jar" "$here/testprograms/src"
    mkdir -p "$out/otel"
    while read -r path sum; do
        fetch otel "$path" "$sum"
        classpath=$classpath:$out/otel/${path##*/}
    done <<<"$otel_jars"
    build_jar dwell-opentelemetry.jar "$jdk" 8 "" "$classpath" "$here/opentelemetry/src"
    build_jar dwell-testprograms-otel.jar "$jdk" 8 "" \
        "$out/dwell-opentelemetry.jar:$out/dwell-testprograms.jar:$classpath" \
        "$here/testprograms/src-otel"
}

# The oldest JMH that the profiler runs with, and a library in its interface.
jmh_jars="\
org/openjdk/jmh/jmh-core/1.21/jmh-core-1.21.jar \
79aecd73ffb5d95d88b1ac36b505fa30ae3e83788e936838e2be9a51074fd2dd
org/apache/commons/commons-math3/3.2/commons-math3-3.2.jar \
6268a9a0ea3e769fc493a21446664c0ef668e48c93d126791f6f3f757978fee2"

build_jmh() {
    local jdk path sum classpath=
    jdk=$(find_jdk 11+) || fail "no JDK >= 11 with javac found; set JAVA_HOME or DWELL_JDKS"
    mkdir -p "$out/jmh"
    while read -r path sum; do
        fetch jmh "$path" "$sum"
        classpath=$classpath${classpath:+:}$out/jmh/${path##*/}
    done <<<"$jmh_jars"
    provided=1 build_jar dwell-jmh.jar "$jdk" 8 "" "$classpath" "$here/jmh/parts:$here/jmh/src"
}

# Vert.x with its router and their dependencies, for an example.
vertx_jars="\
com/fasterxml/jackson/core/jackson-core/2.16.1/jackson-core-2.16.1.jar \
f5f8ef90609e64fec82eb908e497dc7d81b2eb983fe509b870292a193cde4dfb
io/netty/netty-buffer/4.1.118.Final/netty-buffer-4.1.118.Final.jar \
0eea4e8666a9636a28722661d8ba5fa8564477e75fec6dd2ff3e324e361f8b3c
io/netty/netty-codec/4.1.118.Final/netty-codec-4.1.118.Final.jar \
4abd215fd1ed7ce86509d169cc9cbede5042176c265a79b3b70602b017226c3f
io/netty/netty-codec-dns/4.1.118.Final/netty-codec-dns-4.1.118.Final.jar \
e115e42ca1e3cc8d85e3a632d8faa102d18c0ebc1fa4511af30bec79f8c147d4
io/netty/netty-codec-http/4.1.118.Final/netty-codec-http-4.1.118.Final.jar \
09822d785e9a794838031ddd5346cf419b30c036a981c2e277a062bea884174b
io/netty/netty-codec-http2/4.1.118.Final/netty-codec-http2-4.1.118.Final.jar \
68da0b1a34dceb00a6f9f6f788fb2f6b7b9e4adba8c70658ac2bd7eb898b97ae
io/netty/netty-codec-socks/4.1.118.Final/netty-codec-socks-4.1.118.Final.jar \
094465e3cfb3aef0fca38ed82b801f53a6c8be7ae1f83ab0c1b2e8ece2586840
io/netty/netty-common/4.1.118.Final/netty-common-4.1.118.Final.jar \
65cce901ecf0f9d6591cc7750772614ab401a84415dc9aec9da4d046f0f9a77c
io/netty/netty-handler/4.1.118.Final/netty-handler-4.1.118.Final.jar \
26e3f8a5e859fd62cf3c13dc6d75e4e18879f000a5d0ad7f58f8679675d23dae
io/netty/netty-handler-proxy/4.1.118.Final/netty-handler-proxy-4.1.118.Final.jar \
fef926126f44c668968dd3e2389c2552981d452e6dfc23b1f9bd03db92c21f96
io/netty/netty-resolver/4.1.118.Final/netty-resolver-4.1.118.Final.jar \
3170c225972c18b6850d28add60db15bb28d83c4e3d5b686ca220e0bd7273c8a
io/netty/netty-resolver-dns/4.1.118.Final/netty-resolver-dns-4.1.118.Final.jar \
c0e0fdaffaba849e3145b2b96288fc8fc6f3b2a623cf72aaba708288348e4938
io/netty/netty-transport/4.1.118.Final/netty-transport-4.1.118.Final.jar \
ab3751e717daef9c8d91e4d74728a48730bd8530b72e2466b222b2ea3fb07db9
io/netty/netty-transport-native-unix-common/4.1.118.Final/netty-transport-native-unix-common-4.1.118.Final.jar \
69b16793d7b41ea76a762bd2bd144fc4f7c39c156a7a59ebf69baeb560fb10b7
io/vertx/vertx-auth-common/4.5.14/vertx-auth-common-4.5.14.jar \
e956306b7f1096d2134b0cbb4df5a3c6d1df432141dc3c9544af68ab85f7f5a1
io/vertx/vertx-bridge-common/4.5.14/vertx-bridge-common-4.5.14.jar \
67adb8b43b9d2a17e9cf63727fcb8ec53784fe7b9e1e5884c8c30d3111ec5f25
io/vertx/vertx-core/4.5.14/vertx-core-4.5.14.jar \
13d9b79a426cbf159d8aa7ded2a63e07bef484d910234da50110fd2cfce20180
io/vertx/vertx-web/4.5.14/vertx-web-4.5.14.jar \
c8cf0fc7db7885bb0fee2ca0d7a5df8a76d3c32736898cfb7d7fd16f2f2fcb30
io/vertx/vertx-web-common/4.5.14/vertx-web-common-4.5.14.jar \
c4463d7bc1ff325456bfaa25ce27c21f2ee321ed604fbe980fadae39fcd66443"

build_vertx() {
    local jdk path sum classpath=$out/dwell-api.jar examples
    examples=$(dirname "$here")/examples
    jdk=$(find_jdk 11+) || fail "no JDK >= 11 with javac found; set JAVA_HOME or DWELL_JDKS"
    build_jar dwell-api.jar "$jdk" 8 "" "" "$here/api/src"
    mkdir -p "$out/vertx"
    while read -r path sum; do
        fetch vertx "$path" "$sum"
        classpath=$classpath:$out/vertx/${path##*/}
    done <<<"$vertx_jars"
    build_jar dwell-fileserver.jar "$jdk" 8 FileServer "$classpath" "$examples/fileserver"
}

if [ "${1:-}" = --vertx ]; then
    mkdir -p "$out"
    exec 9>"$out/.vertx.lock"
    ! command -v flock >/dev/null || flock 9
    build_vertx
    exit
fi
if [ "${1:-}" = --jmh ]; then
    mkdir -p "$out"
    exec 9>"$out/.jmh.lock"
    ! command -v flock >/dev/null || flock 9
    build_jmh
    exit
fi
if [ "${1:-}" = --otel ]; then
    mkdir -p "$out"
    exec 9>"$out/.otel.lock"
    ! command -v flock >/dev/null || flock 9
    build_otel
    exit
fi
if [ "${1:-}" = --jmc ]; then
    mkdir -p "$out"
    # One at a time; a process that waited here finds everything built.
    exec 9>"$out/.jmc.lock"
    ! command -v flock >/dev/null || flock 9
    build_jmc
    exit
fi
if [ "${1:-}" = --jfrconv ]; then
    mkdir -p "$out/jfrconv"
    exec 9>"$out/.jfrconv.lock"
    ! command -v flock >/dev/null || flock 9
    read -r path sum <<<"$jfrconv_jar"
    fetch jfrconv "$path" "$sum"
    exit
fi
if [ "${1:-}" = --jdk ]; then
    find_jdk "${2:?--jdk needs a version, as 17 or 21+}" || fail "no JDK $2 found"
    exit
fi
[ $# -eq 0 ] || fail "unknown argument '$1'; the head of this file tells the usage"
mkdir -p "$out"
jdk=$(find_jdk 11+) || fail "no JDK >= 11 with javac found; set JAVA_HOME or DWELL_JDKS"

build_jar dwell-api.jar "$jdk" 8 "" "" "$here/api/src"

# Without the library, which `xtask package` adds.
build_jar dwell-agent-classes.jar "$jdk" 8 "" "" "$here/agent/src"

# One file, so that it can be placed anywhere.
build_jar dwell-demo.jar "$jdk" 8 io.dwell.demo.Demo "" "$here/demo/src:$here/api/src"

build_jar dwell-testprograms.jar "$jdk" 8 "" "$out/dwell-api.jar" "$here/testprograms/src"

# Examples that need nothing but the JDK and our API.
examples=$(dirname "$here")/examples
build_jar dwell-examples.jar "$jdk" 8 "" "$out/dwell-api.jar" \
    "$(printf '%s:' "$examples"/safepoints/*.java)$examples/bias:$examples/latency:$examples/faults"

# The profiler for JMH as far as it needs no JMH, with its tests.
build_jar dwell-jmh-tests.jar "$jdk" 8 io.dwell.jmh.PartsTest "" "$here/jmh/parts:$here/jmh/test"

build_jar dwell-verify.jar "$jdk" 11 io.dwell.verify.Check "" "$here/verify/src"
if jdk21=$(find_jdk 21+); then
    build_jar dwell-testprograms-21.jar "$jdk21" 21 "" \
        "$out/dwell-testprograms.jar:$out/dwell-api.jar" "$here/testprograms/src21"
else
    echo "dwell-testprograms-21.jar: skipped, no JDK >= 21 found"
fi
if ! command -v cc >/dev/null; then
    echo "libdwelltest_*.so: skipped, no C compiler found"
elif [ ! -e "$jdk/include/jni.h" ]; then
    echo "libdwelltest_*.so: skipped, $jdk has no include/jni.h"
else
    for library in support alpha beta jni_exported jni_static threadctx blocking nomemory takesignal; do
        build_library "$library" "$jdk"
    done
    # The other way to reach thread-local variables (TLS descriptors).
    build_library threadctx_desc "$jdk" threadctx -mtls-dialect=gnu2
fi
