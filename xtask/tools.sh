# The steps by which `./test` installs tools, each as a function. `./test` sources this file, and
# xtask/tests/tools.rs runs it with an empty PATH. Must not act when it is sourced.
#
# Steps say on standard output what they install, and what to do where they cannot.

# Refuses in one line what `./test` does not know, before anything is built. It is read by
# xtask/src/suite/options.rs; xtask/tests/tools.rs tries that both take the same.
check_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --all | --list) ;;
        --only)
            if [ -z "${2:-}" ]; then
                echo "./test: --only needs a text" >&2
                return 2
            fi
            shift
            ;;
        *)
            echo "./test: $1: no such option; there are --all, --only TEXT and --list" >&2
            return 2
            ;;
        esac
        shift
    done
}

# Prints the path of the browser for browser tests; fails without one.
find_browser() {
    local name
    for name in "${DWELL_CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
        [ -n "$name" ] || continue
        if command -v "$name" 2>/dev/null; then
            return 0
        fi
    done
    return 1
}

# Prints the home of a JDK of this feature release; fails without one.
# find_jdk FEATURE
find_jdk() {
    local home release
    for home in "${JAVA_HOME:-}" "${DWELL_JDKS:-${HOME:-/nowhere}/.cache/dwell-jdks}"/* \
        "${DWELL_SYSTEM_JDKS:-/usr/lib/jvm}"/*; do
        [ -n "$home" ] && [ -x "$home/bin/javac" ] || continue
        release=$(sed -n 's/^JAVA_VERSION="\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' "$home/release" 2>/dev/null) || continue
        if [ "$release" = "$1" ]; then
            echo "$home"
            return 0
        fi
    done
    return 1
}

can_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

# Installs Debian packages, with the lists as they are, or after fetching new ones. Its output goes
# to standard error.
install_packages() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@" >&2 && return 0
    apt-get update -q >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@" >&2
}

# provide WHAT PACKAGES ADVICE FIND...: has what FIND finds installed if it is not there.
# Fails, with the advice, if it still is not.
provide() {
    local what=$1 package=$2 advice=$3
    shift 3
    if "$@" >/dev/null; then
        return 0
    fi
    if can_install; then
        echo "installing $what"
        # shellcheck disable=SC2086  # several packages in one word
        install_packages $package || true
        if "$@" >/dev/null; then
            return 0
        fi
    fi
    echo "no $what found: $advice"
    return 1
}

provide_browser() {
    provide Chromium chromium \
        "the browser tests will fail; install it (on Debian: apt-get install chromium) or name it in DWELL_CHROMIUM" \
        find_browser
}

# provide_jdk FEATURE
provide_jdk() {
    provide "JDK $1" "openjdk-$1-jdk-headless" \
        "the tests need JDK 17 and 25; install it, or put it below DWELL_JDKS" \
        find_jdk "$1"
}

find_mono() {
    command -v mono && command -v mcs
}

# Mono, and its compiler, for the tests of the second runtime; without them these are skipped.
provide_mono() {
    provide Mono "mono-runtime mono-mcs libmono-profiler" \
        "the tests of the second runtime are skipped (on Debian: apt-get install mono-runtime mono-mcs)" \
        find_mono
}
