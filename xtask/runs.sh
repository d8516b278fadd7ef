# A line of the table of places where dwell was run, for xtask/where-it-runs and for the machine of
# xtask/arm64-vm, which has no bash. Must not act when it is sourced.

# libc_of PID: the libc of a process.
libc_of() {
    local file
    file=$(sed -n 's/.* \(\/.*\(libc\.so\.6\|libc-2\.[0-9]*\.so\|ld-musl-[^ ]*\)\)$/\1/p' /proc/$1/maps |
        head -n 1)
    case $file in
    *musl*) echo "musl $("$file" 2>&1 | sed -n 's/^Version //p')" ;;
    *)
        tr '\0' '\n' <"$file" |
            sed -n 's/.*stable release version \([0-9.]*[0-9]\).*/glibc \1/p' | head -n 1
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
