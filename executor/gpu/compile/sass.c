// A line of code is
//
//         /*0a40*/              @!UP0 LDG.E.128.CONSTANT R4, desc[UR8][R2.64+0x10] ;
//
// the address in a comment, a predicate or none, the opcode with its modifiers. Data has a
// directive (".word") there.
#include "executor/gpu/compile/sass.h"
#include "common/mem.h"
#include "executor/fact_list.h"
#include <stdbool.h>
#include <string.h>

// feature, opcodes (without modifiers) that it counts
static const struct class
{
    const char *name;
    const char *opcode[16];
} classes[] = {
    {"sass_ffma", {"FFMA", "FFMA2", "FFMA32I"}},
    {"sass_fadd", {"FADD", "FADD2", "FADD32I"}},
    {"sass_fmul", {"FMUL", "FMUL2", "FMUL32I"}},
    {"sass_half", {"HFMA2", "HADD2", "HMUL2", "HFMA2_32I", "HADD2_32I", "HMUL2_32I", "HMNMX2"}},
    {"sass_double", {"DFMA", "DADD", "DMUL"}},
    {"sass_hmma", {"HMMA"}},
    {"sass_gmma", {"HGMMA", "IGMMA", "QGMMA", "BGMMA"}},
    {"sass_mma_other", {"IMMA", "DMMA", "BMMA", "QMMA", "OMMA"}},
    {"sass_mufu", {"MUFU"}},
    {"sass_imad", {"IMAD", "IMAD32I", "UIMAD", "XMAD"}},
    {"sass_integer",
     {"IADD", "IADD3", "VIADD", "LEA", "LOP3", "SHF", "SHL", "SHR", "PRMT", "IMNMX", "VIMNMX",
      "IABS", "POPC", "FLO", "BFE", "BFI"}},
    {"sass_uniform",
     {"UIADD3", "ULEA", "ULOP3", "USHF", "UPRMT", "UMOV", "USEL", "UISETP", "R2UR", "UFLO",
      "UPOPC"}},
    {"sass_compare", {"ISETP", "FSETP", "DSETP", "HSETP2", "PLOP3", "FMNMX", "FSET", "ISET"}},
    {"sass_move", {"MOV", "SEL", "FSEL", "S2R", "CS2R", "S2UR", "P2R", "R2P"}},
    {"sass_convert", {"F2F", "F2FP", "F2I", "I2F", "I2FP", "I2I", "F2IP", "FRND"}},
    {"sass_ldg", {"LDG", "LD"}},
    {"sass_stg", {"STG", "ST"}},
    {"sass_lds", {"LDS", "LDSM"}},
    {"sass_sts", {"STS", "STSM"}},
    {"sass_ldl", {"LDL"}},
    {"sass_stl", {"STL"}},
    {"sass_ldc", {"LDC", "ULDC", "LDCU"}},
    {"sass_async_copy", {"LDGSTS", "UBLKCP", "UTMALDG", "UTMASTG", "UTMAREDG", "UBLKPF"}},
    {"sass_atomic", {"ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS"}},
    {"sass_bar", {"BAR"}},
    {"sass_wait", {"SYNCS", "DEPBAR", "LDGDEPBAR", "WARPSYNC", "MEMBAR", "WARPGROUP", "NANOSLEEP"}},
    {"sass_shuffle", {"SHFL", "VOTE", "MATCH", "REDUX"}},
    {"sass_branch", {"BRA", "BRX", "JMP", "JMX", "CALL", "RET", "BREAK"}},
    {"sass_reconverge", {"BSSY", "BSYNC", "BMOV"}},
};

struct mix {
    double count[ARRAY_LEN(classes)];
    double total, predicated, wide; // wide: loads and stores of global memory of 128 bits
};

struct span {
    const char *at, *end;
};

static void skip_blanks(struct span *line)
{
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t')) {
        line->at++;
    }
}

static bool is_opcode_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Passes over "/*0a40*/"; false when the line does not begin so.
static bool skip_address(struct span *line)
{
    skip_blanks(line);
    if (line->end - line->at < 4 || memcmp(line->at, "/*", 2) != 0) {
        return false;
    }
    const char *at;
    for (at = line->at + 2; at + 1 < line->end; at++) {
        if (memcmp(at, "*/", 2) == 0) {
            line->at = at + 2;
            return true;
        }
    }
    return false;
}

static bool same(const struct span *word, const char *text)
{
    size_t len = (size_t)(word->end - word->at);

    return strlen(text) == len && memcmp(word->at, text, len) == 0;
}

static bool has_modifier(const struct span *line, const char *modifier)
{
    size_t len = strlen(modifier);

    for (const char *at = line->at; at + len <= line->end && *at != ' ' && *at != ';'; at++) {
        if (memcmp(at, modifier, len) == 0 && (at + len == line->end || !is_opcode_char(at[len]))) {
            return true;
        }
    }
    return false;
}

static void count_opcode(const struct span *line, const struct span *opcode, struct mix *mix)
{
    bool global = same(opcode, "LDG") || same(opcode, "STG");

    mix->total++;
    mix->wide += global && has_modifier(line, ".128");
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        for (size_t k = 0; k < ARRAY_LEN(classes[i].opcode) && classes[i].opcode[k]; k++) {
            if (same(opcode, classes[i].opcode[k])) {
                mix->count[i]++;
                return;
            }
        }
    }
}

static void count_line(struct span line, struct mix *mix)
{
    if (!skip_address(&line)) {
        return;
    }
    skip_blanks(&line);
    bool predicated = line.at < line.end && *line.at == '@';
    while (predicated && line.at < line.end && *line.at != ' ' && *line.at != '\t') {
        line.at++;
    }
    skip_blanks(&line);
    struct span opcode = line;
    opcode.end = opcode.at;
    while (opcode.end < line.end && is_opcode_char(*opcode.end)) {
        opcode.end++;
    }
    // The end of each kernel is filled up with NOP.
    if (opcode.end > opcode.at && *opcode.at >= 'A' && *opcode.at <= 'Z' && !same(&opcode, "NOP")) {
        mix->predicated += predicated;
        count_opcode(&line, &opcode, mix);
    }
}

void sass_features(const char *text, size_t len, struct fact **list, size_t *count)
{
    const char *at = text, *stop = len > 0 ? text + len : text;
    struct mix mix = {.total = 0};

    while (at < stop) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));

        end = end ? end : stop;
        count_line((struct span){at, end}, &mix);
        at = end < stop ? end + 1 : stop;
    }
    if (mix.total == 0) {
        return;
    }
    fact_list_add(list, count, "sass_total", mix.total);
    fact_list_add(list, count, "sass_predicated", mix.predicated);
    fact_list_add(list, count, "sass_global_128", mix.wide);
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        fact_list_add(list, count, classes[i].name, mix.count[i]);
    }
}
