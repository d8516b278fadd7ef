# A line of the table of places where dwell was run, for xtask/where-it-runs and for the machine of
# xtask/arm64-vm, which has no bash. Must not act when it is sourced.

# libc_of PID: the libc of a process, and the distribution that built it, if it says so.
libc_of() {
    local file text by release
    file=$(sed -n 's/.* \(\/.*\(libc\.so\.6\|libc-2\.[0-9]*\.so\|ld-musl-[^ ]*\)\)$/\1/p' /proc/$1/maps |
        head -n 1)
    case $file in
    *musl*) echo "musl $("$file" 2>&1 | sed -n 's/^Version //p')" ;;
    *)
        text=$(tr '\0' '\n' <"$file" | grep -a 'stable release version' | head -n 1)
        by=$(echo "$text" | sed -n 's/^GNU C Library (\([A-Z][a-z]*\) GLIBC.*/\1/p')
        release=$(echo "$text" | sed -n 's/.*+deb\([0-9]*\)u.*/ \1/p')
        echo "glibc $(echo "$text" | sed 's/.*version \([0-9.]*[0-9]\).*/\1/')${by:+ ($by$release)}"
        ;;
    esac
}

# describe PID HOME NOTE: the line for a JVM. Debian's JDK 8 has no file with its version.
describe() {
    local processor release=$2/release version vendor settings
    processor=$(uname -m)
    [ "$processor" != x86_64 ] || processor=x86-64
    [ "$processor" != aarch64 ] || processor=arm64
    if [ -e "$release" ]; then
        version=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$release")
        vendor=$(sed -n 's/^IMPLEMENTOR="\(.*\)"/\1/p' "$release")
    else
        settings=$("$2/bin/java" -XshowSettings:properties -version 2>&1)
        version=$(echo "$settings" | sed -n 's/^ *java\.version = //p')
        vendor=$(echo "$settings" | sed -n 's/^ *java\.vendor = //p')
    fi
    echo "| $processor$3 | $(uname -r | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')" \
        "| $(libc_of "$1") | $version ${vendor:+($vendor)} |"
}
