#!/usr/bin/env bash
#
# Runs the whole test suite, the fuzzing against the reference included, as aarch64.
#
#     scripts/test_arm.sh [LINES]
#
# LINES is how many lines the fuzzing takes (2000). On an ARM machine everything runs as it is. On x86-64 Linux it
# is built by a cross compiler and run by qemu-user; what is missing for that is installed by apt-get, which on
# Debian needs root: a cross linker, qemu, and, where rustup cannot add the target, Debian's own compiler with its
# standard library for arm64, which is unpacked into the target folder and touches nothing else.
#
# qemu shows that NEON code computes the right thing. It shows neither ARM's speed nor its weak memory ordering.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly lines=${1:-2000} triple=aarch64-unknown-linux-gnu
readonly arm=${CARGO_TARGET_DIR:-$PWD/target}/arm

main() {
    if [[ $(uname -m) != aarch64 ]]; then
        install_missing
        rustup target add $triple 2>/dev/null || unpack_compiler
        export CARGO_BUILD_TARGET=$triple CARGO_TARGET_DIR=$arm/target
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
        # A core with NEON, and nothing newer that would hide a missing check.
        export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu QEMU_CPU=neoverse-n1
    fi
    cargo test --locked --no-run
    local -r binary=${CARGO_TARGET_DIR:-target}/${CARGO_BUILD_TARGET:-}/debug/firstseen
    where_arm_binaries_run "$binary" bash -euo pipefail -c "
        cargo test --locked
        python3 scripts/parity.py --binary '$binary' $lines
        python3 scripts/checkout_parity.py --binary '$binary' $lines"
    local file_kind
    file_kind=$(od -An -tx1 -j18 -N2 "$binary" | tr -d ' ')
    # The machine field of an ELF header: EM_AARCH64 is 183.
    [[ $file_kind == b700 ]] || { echo "$binary is no aarch64 program" >&2 && exit 1; }
    echo "all tests passed as aarch64"
}

install_missing() {
    local missing=()
    command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
    command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
    ((${#missing[@]} == 0)) || { apt-get update -q && apt-get install -qy --no-install-recommends "${missing[@]}"; }
}

# Debian's compiler and its standard libraries for both machines. They must be of one version, so their names,
# which change with every version, are looked up.
unpack_compiler() {
    export RUSTC=$arm/bin/rustc RUSTDOC=$arm/bin/rustdoc
    [[ ! -e $arm/complete ]] || return 0
    rm -rf "$arm"
    mkdir -p "$arm"/{lists/partial,cache/archives/partial,debs,rust,bin}
    local options=(-q -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root
        -o "Dir::State::lists=$arm/lists" -o "Dir::Cache=$arm/cache")
    apt-get "${options[@]}" update
    local names
    mapfile -t names < <(apt-cache "${options[@]}" depends rustc-web |
        sed -nE 's/^ *Depends: (libstd-rust-web-[0-9.]+|libllvm[0-9]+)(:amd64)?$/\1/p')
    (cd "$arm/debs" && apt-get "${options[@]}" download rustc-web libstd-rust-web-dev{,:arm64} "${names[@]}")
    for package in "$arm"/debs/*.deb; do dpkg -x "$package" "$arm/rust"; done
    for program in rustc rustdoc; do
        printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' \
            "$arm/rust/usr/lib/x86_64-linux-gnu" "$arm/rust/usr/bin/$program" >"$arm/bin/$program"
        chmod +x "$arm/bin/$program"
    done
    touch "$arm/complete"
}

# where_arm_binaries_run BINARY COMMAND...: runs the command where the kernel starts aarch64 programs. If it does
# not do so already, that is a namespace in which qemu is registered for them (Linux 6.7 or newer); nothing
# outside it changes. The second namespace gives up the privileges that the first one needs, as tests of
# permissions are about people who have none.
where_arm_binaries_run() {
    local program=$1
    shift
    if "$program" --version >/dev/null 2>&1; then
        "$@"
        return
    fi
    unshare --user --map-root-user --mount bash -euo pipefail -c '
        mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
        magic="\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
        mask="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
        printf "%s" ":aarch64:M::$magic:$mask:$(command -v qemu-aarch64):F" >/proc/sys/fs/binfmt_misc/register
        exec unshare --user --map-user=1000 --map-group=1000 "$@"' _ "$@"
}

main
