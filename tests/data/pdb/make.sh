#!/bin/sh
# Make the images and the PDB that symbol/pe and symbol/pdb read; clang 14 and lld 14 made
# those that are here. With others the numbers in the tests change.
set -e
cd "$(dirname "$0")"
clang --target=x86_64-pc-windows-msvc -O1 -g -ffile-compilation-dir=. -c functions.c -o functions.obj
link="lld-link /entry:start /subsystem:console /nodefaultlib /Brepro functions.obj"
$link /debug /pdb:functions.pdb /pdbaltpath:functions.pdb /pdbsourcepath:X: /out:functions.exe
$link /debug:symtab /out:symtab.exe
rm -f functions.obj functions.lib symtab.lib
