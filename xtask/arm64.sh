# The tools of both checks of arm64 (xtask/arm64, xtask/arm64-vm): the compiler, its standard library
# for arm64, a linker, qemu and arm64's libc. All are packages of Debian 12, unpacked to DWELL_ARM64
# (default ~/.cache/dwell-arm64). Must not act when it is sourced.

home=${DWELL_ARM64:-$HOME/.cache/dwell-arm64}
target=aarch64-unknown-linux-gnu

skip() {
    echo "skipped: $*"
    exit 0
}

# The mirrors of Debian that this machine uses: for the release, and for its updates.
mirrors() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
        awk '/^URIs:/ { print $2 } /^deb / { for (i = 2; i <= NF; i++) if ($i ~ /^http/) print $i }' |
        grep debian | sort -u
}

# apt FOLDER RELEASE COMMAND...: apt-get for packages of both processors of one release, with all of
# its state in the folder.
apt() {
    local apt=$1 release=$2 key mirror suite options
    shift 2
    options=(-qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o Acquire::Languages=none
        -o APT::Sandbox::User=root -o APT::Architectures::=amd64 -o APT::Architectures::=arm64)
    if [ ! -e "$apt/sources.list" ]; then
        key=$(ls /usr/share/keyrings/debian-archive-keyring.* | head -n 1)
        mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
        for mirror in $(mirrors); do
            case $mirror in *security*) suite=$release-security ;; *) suite=$release ;; esac
            echo "deb [signed-by=$key] $mirror $suite main"
        done >"$apt/sources.list"
        apt-get "${options[@]}" -o Dir::State::Status=/dev/null update || return
    fi
    (cd "$apt/debs" && apt-get "${options[@]}" "$@")
}

# download FOLDER RELEASE PACKAGE...: without those that they depend on, to FOLDER/debs.
download() {
    local apt=$1 release=$2
    shift 2
    apt "$apt" "$release" -o Dir::State::Status=/dev/null download "$@"
}

# Writes a program of two lines to $1/bin.
program() {
    mkdir -p "$1/bin"
    printf '#!/bin/sh\n%s\n' "$3" >"$1/bin/$2"
    chmod +x "$1/bin/$2"
}

# Makes a folder next to $home that goes away with the script, as $place does: $work.
make_work() {
    mkdir -p "$(dirname "$home")"
    work=$(mktemp -d "$home.work-XXXXXX")
    trap 'rm -rf "$work" ${place:+"$place"}' EXIT
}

provide() {
    local deb usr=$home/host/usr
    [ ! -x "$home/bin/run" ] || [ ! -d "$usr/aarch64-linux-gnu/include/linux" ] || return 0
    make_work
    download "$work/apt" bookworm rustc-web libstd-rust-web-1.96 libstd-rust-web-dev libllvm22 \
        libstd-rust-web-dev:arm64 qemu-user-static gcc-12-aarch64-linux-gnu \
        cpp-12-aarch64-linux-gnu libgcc-12-dev-arm64-cross libgcc-s1-arm64-cross \
        binutils-aarch64-linux-gnu libc6-arm64-cross libc6-dev-arm64-cross \
        linux-libc-dev-arm64-cross libc6:arm64 libgcc-s1:arm64 || skip "Debian 12's compiler for arm64 cannot be had"
    for deb in "$work"/apt/debs/*.deb; do
        case $deb in
        */lib*-dev_*_arm64.deb | *_amd64.deb | *_all.deb) dpkg -x "$deb" "$work/host" ;;
        *) dpkg -x "$deb" "$work/guest" ;;
        esac
    done
    rm -rf "$work/apt"
    local libs="LD_LIBRARY_PATH=$usr/lib/x86_64-linux-gnu"
    program "$work" rustc "exec env $libs $usr/bin/rustc \"\$@\""
    program "$work" cc "exec env $libs PATH=$usr/bin:\$PATH $usr/bin/aarch64-linux-gnu-gcc-12 --sysroot=$home/host \"\$@\""
    program "$work" ar "exec env $libs $usr/bin/aarch64-linux-gnu-ar \"\$@\""
    program "$work" nm "exec env $libs $usr/bin/aarch64-linux-gnu-nm \"\$@\""
    program "$work" run "exec $usr/bin/qemu-aarch64-static -L $home/guest \"\$@\""
    mkdir -p "$home"
    rm -rf "$home"/{bin,host,guest}
    mv "$work"/{bin,host,guest} "$home"
}

# Has the compiler ready for cargo, which puts its results below arm64 in the usual folder: those of
# another compiler would be built again each time.
use_compiler() {
    local tool
    [ "$(uname -m)" = x86_64 ] || skip "the compiler for arm64 is for x86-64 machines"
    for tool in apt-get dpkg; do
        command -v "$tool" >/dev/null || skip "$tool is missing"
    done
    provide
    "$home/bin/rustc" --version >/dev/null 2>&1 || skip "Debian 12's compiler does not run here"
    export RUSTC=$home/bin/rustc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$home/bin/cc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$home/bin/run
    # The command's cryptography has parts in C and assembler.
    export CC_aarch64_unknown_linux_gnu=$home/bin/cc AR_aarch64_unknown_linux_gnu=$home/bin/ar
    export NM_aarch64_unknown_linux_gnu=$home/bin/nm
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/arm64
    unset RUSTC_WORKSPACE_WRAPPER
}

# Where build_products puts the agents (release) and the command (cli).
products=${CARGO_TARGET_DIR:-$root/target}/arm64/$target

# GNU's linker keeps the compiler's marks of code and of data ($x and $d) as symbols, 170 KB of the
# agent. Only disassemblers read them. The file keeps its time, so that Cargo builds nothing again.
drop_marks() {
    LD_LIBRARY_PATH=$home/host/usr/lib/x86_64-linux-gnu \
        "$home/host/usr/bin/aarch64-linux-gnu-objcopy" -p -w -N '$[xd]*' "$products/release/$1"
}

# Builds agents and command for arm64 as `./dwell build` does for this machine: the agents load with
# each libc, and the command has its libc inside.
build_products() {
    cargo build --quiet --locked --release --target $target -p dwell-agent -p dwell-mono
    drop_marks libdwell.so
    drop_marks libmono_profiler_dwell.so
    cargo rustc --quiet --locked --profile cli --target $target -p dwell-cli --bin dwell -- \
        -C target-feature=+crt-static
}
