#!/usr/bin/env bash
# Puts SwiftShader, a second software adapter, into .venv: two files out of Debian's chromium-common, of which nothing is
# installed. Some seconds and 5 MB; fails where there is no such package.
set -euo pipefail
cd "$(dirname "$0")/../.venv"

mkdir -p share/swiftshader
cd share/swiftshader
apt-get download -qq chromium-common 2>/dev/null
for file in libvk_swiftshader.so vk_swiftshader_icd.json; do
    dpkg-deb --fsys-tarfile chromium-common_*.deb | tar -xO "./usr/lib/chromium/$file" >"$file"
done
rm chromium-common_*.deb
