#!/usr/bin/env bash
# Builds the Java parts into target/java/: the demo, the test programs, their native libraries and
# the recording checker. Incremental by timestamps; one line per step. Needs a JDK >= 11 with
# javac (>= 21 for the classes that use virtual threads) and cc for the native libraries.
#
# usage: java/build.sh            build what is out of date
#        java/build.sh --jdk MAJOR|MIN+   print the home of such a JDK (17, or 21+) and exit
#        java/build.sh --jmc      build target/java/dwell-verify-jmc.jar, which only tests need, with
#                                 the parser of JDK Mission Control: downloaded once from Maven
#                                 Central, or the mirror DWELL_MAVEN, into DWELL_JARS (default
#                                 ~/.cache/dwell-jars). Needs a JDK >= 17.
#        java/build.sh --otel     build target/java/dwell-opentelemetry.jar, and a program for its
#                                 tests, against OpenTelemetry's jars, downloaded in the same way
# JDKs are looked for in JAVA_HOME, PATH, DWELL_JDKS/* (default ~/.cache/dwell-jdks/*) and
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

# The first JDK whose major version is $1, or at least MIN where $1 is "MIN+".
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
    "$jdk/bin/javac" --release "$release" -Xlint:all,-options,-serial,-try -Werror -g -encoding UTF-8 \
        ${classpath:+-cp "$classpath"} -d "$tmp/classes" "@$tmp/sources" ||
        { rm -rf "$tmp"; fail "$1 does not compile"; }
    # A jar that was compiled against others names them, so that it can be run by itself. A line of
    # a manifest is short; a blank continues it.
    : >"$tmp/manifest"
    [ ${#jars[@]} = 0 ] ||
        { echo "Class-Path: " && printf '  %s\n' "${jars[@]#"$out/"}"; } >"$tmp/manifest"
    "$jdk/bin/jar" --create --file "$tmp/jar" --manifest "$tmp/manifest" \
        ${main:+--main-class "$main"} -C "$tmp/classes" .
    # Renamed into place, so that a JVM that reads the old jar is not disturbed.
    mv "$tmp/jar" "$target"
    rm -rf "$tmp"
    echo "$1: built with JDK $(jdk_major "$jdk") for release $release"
}

# build_library NAME JDK: compiles testprograms/native/NAME.c. Optimised and without frame
# pointers, as libraries are, but with symbols.
build_library() {
    local name=$1 jdk=$2 native=$here/testprograms/native target
    target=$out/libdwelltest_$1.so
    if ! outdated "$target" "$native/$name.c" "$native/burn.h"; then
        echo "${target##*/}: up to date"
        return
    fi
    cc -O2 -g -fomit-frame-pointer -shared -fPIC -Wall -Wextra -Wno-unused-parameter -Werror \
        -I"$jdk/include" -I"$jdk/include/linux" -o "$target.$$" "$native/$name.c" ||
        fail "${target##*/} does not compile"
    mv "$target.$$" "$target"
    echo "${target##*/}: built"
}

# The parser of JDK Mission Control and what it needs: path in a Maven repository, SHA-256.
jmc_jars="\
org/openjdk/jmc/flightrecorder/9.1.2/flightrecorder-9.1.2.jar \
103e6ef83c09329fc59f18a1556e120c38d7faba6cbff13d910c1693312aad57
org/openjdk/jmc/common/9.1.2/common-9.1.2.jar \
e806dc549015997df1fe49ac0db0676c641587e3c9711d03d522f042f1d961fd
org/owasp/encoder/encoder/1.2.3/encoder-1.2.3.jar \
b09e2cd5c36a7127e091df9be628278b1166b40bc08b9de8196ccddb0cccd67f
at/yawk/lz4/lz4-java/1.10.2/lz4-java-1.10.2.jar \
252dabd586d22149a31661a8afc1a50747714eb1a298bd4a6e780c8c91a13866"

# has_sum FILE SHA256: whether it is there and is the one that is meant.
has_sum() {
    [ -e "$1" ] && [ "$(sha256sum <"$1")" = "$2  -" ]
}

# download URL FILE: with what there is.
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

if [ "${1:-}" = --otel ]; then
    mkdir -p "$out"
    exec 9>"$out/.otel.lock"
    ! command -v flock >/dev/null || flock 9
    build_otel
    exit
fi
if [ "${1:-}" = --jmc ]; then
    mkdir -p "$out"
    # One at a time; who waited finds all done.
    exec 9>"$out/.jmc.lock"
    ! command -v flock >/dev/null || flock 9
    build_jmc
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

# One file, so that it can be placed anywhere.
build_jar dwell-demo.jar "$jdk" 8 io.dwell.demo.Demo "" "$here/demo/src:$here/api/src"

build_jar dwell-testprograms.jar "$jdk" 8 "" "$out/dwell-api.jar" "$here/testprograms/src"

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
    for library in support alpha beta jni_exported jni_static; do
        build_library "$library" "$jdk"
    done
fi
