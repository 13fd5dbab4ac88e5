#!/bin/sh
# Stands in for nvcc in tests of what compiles candidates with host code: the compiler of C, or for other files that of C++, which
# leaves out what only nvcc knows. A launcher is linked with the driver of tests/support/fake_capture. Fails for an architecture 0,
# and goes on for ever with --endless.
here=$(dirname "$0")
for each; do
    shift
    case $each in
    candidate.cu) exec gcc -shared -fPIC -o candidate.so -x c candidate.cu -x none "$here"/../lib/python3*/site-packages/torch/libcuda.so.1 ;;
    -arch=sm_0 | -gencode=*,code=sm_00a) echo "nvcc fatal   : error: Unsupported gpu architecture 'sm_0'" && exit 1 ;;
    --endless) tail -f /dev/null ;;
    -arch=* | -gencode=* | --expt-* | -Xcompiler) ;;
    -fPIC,*) set -- "$@" -fPIC "${each#-fPIC,}" ;;
    *.cu) set -- "$@" -x c++ "$each" -x none ;;
    *) set -- "$@" "$each" ;;
    esac
done
exec g++ -I"$here/../include" "$@"
