// A line of objdump -d -w --no-show-raw-insn is one of
//
//   0000000000001000 <sgemm>:                              a function starts
//       1000:<tab>vmovaps %zmm0,0x40(%rsp)  <comment>      an instruction
//
// x86 is shown in AT&T syntax, where the destination is the last operand. A loop is the interval of
// a backward jump. The depth of an instruction is the number of loops around it.
#include "executor/cpu/features.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 512
#define LOOPS_MAX 4096

const char *const feature_name[FEATURE_COUNT] = {
#define X(name, text) #name,
    FEATURES(X)
#undef X
};

// Bits of an instruction's kind.
enum {
    IS_FMA = 1,
    IS_VECTOR = 2,
    IS_LOAD = 4,
    IS_STORE = 8,
    IS_CALL = 16,
};

struct instruction {
    uint64_t address;
    unsigned kind;
};

struct loop {
    uint64_t from, to;
};

struct reader {
    double *value; // FEATURE_COUNT of them
    // The current function:
    uint64_t start, end;
    bool counts;  // it belongs to the candidate, not to glue or linkage
    bool is_glue; // it is kcast_entry, which calls the candidate's entry
    struct instruction *instruction;
    size_t instruction_count, instruction_size;
    struct loop loop[LOOPS_MAX];
    size_t loop_count;
    size_t total;   // instructions over all functions
    char entry[64]; // name of the entry; "" until the glue has been read
    // Sizes of the first functions. The entry's is looked up when the glue, which may come last,
    // has named it.
    struct {
        char name[64];
        uint64_t bytes;
    } function[256];
    size_t function_count;
    char current[64]; // name of the current function
};

// One instruction line, parsed.
struct parsed {
    uint64_t address;
    char name[32];
    char operands[LINE_MAX_BYTES];
};

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part);
}

static bool starts_any(const char *text, const char *const *with, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (starts(text, with[i])) {
            return true;
        }
    }
    return false;
}
#define STARTS_ANY(text, ...)                                                                      \
    starts_any(text, (const char *const[]){__VA_ARGS__},                                           \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

// ---- operands ----

// Returns the last operand: what follows the last comma outside parentheses and brackets.
static const char *last_operand(const char *operands)
{
    const char *last = operands;
    int depth = 0;

    for (const char *p = operands; *p != '\0'; p++) {
        if (*p == '(' || *p == '[' || *p == '{') {
            depth++;
        } else if (*p == ')' || *p == ']' || *p == '}') {
            depth--;
        } else if (*p == ',' && depth <= 0) {
            last = p + 1;
        }
    }
    return last;
}

// Returns the width of the vector registers that the instruction names, 0 when it names none.
static unsigned vector_bits(const struct parsed *in)
{
#if defined(__aarch64__)
    return has(in->operands, ".4s") || has(in->operands, ".2d") || has(in->operands, ".16b") ||
                   has(in->operands, ".8h") || in->operands[0] == 'q'
               ? 128
               : 0;
#else
    return has(in->operands, "%zmm")   ? 512
           : has(in->operands, "%ymm") ? 256
           : has(in->operands, "%xmm") ? 128
                                       : 0;
#endif
}

// Whether an instruction with vector registers works on one element. On x86 those are names that
// end in ss or sd, comparisons of one element, and conversions to and from general registers.
static bool is_scalar(const char *name)
{
    size_t len = strlen(name);

#if defined(__aarch64__)
    return len > 1 && name[0] == 'f';
#else
    return (len > 2 && (strcmp(name + len - 2, "ss") == 0 || strcmp(name + len - 2, "sd") == 0)) ||
           starts(name, "cvtsi2") || starts(name, "vcvtsi2") || starts(name, "vcvtt") ||
           starts(name, "cvtt") || has(name, "comiss") || has(name, "comisd");
#endif
}

// ---- one instruction ----

static void bump(struct reader *reader, enum feature feature)
{
    reader->value[feature] += 1;
}

// Counts loads and stores. Returns bits of the kind, as the next two functions do.
static unsigned count_memory(struct reader *reader, const struct parsed *in, bool vector)
{
#if defined(__aarch64__)
    bool load = starts(in->name, "ld"), store = starts(in->name, "st"),
         stack = has(in->operands, "[sp");
#else
    const char *last = last_operand(in->operands), *open = strchr(in->operands, '(');
    bool single = last == in->operands, at_end = strchr(last, '(');
    bool never = STARTS_ANY(in->name, "lea", "nop", "prefetch", "j", "call", "ret", "cld");
    bool reads_last = STARTS_ANY(in->name, "cmp", "test", "ucomis", "comis", "vucomis", "vcomis",
                                 "mul", "div", "idiv");
    bool updates = !STARTS_ANY(in->name, "mov", "vmov", "set", "vextract", "vpmov", "vcvtps2ph",
                               "pop", "vpextr", "pextr", "vcompress", "vpscatter", "vscatter",
                               "vmaskmov", "vpmaskmov");
    bool store = open && !never && at_end && !reads_last;
    bool load =
        open && !never &&
        (!at_end || reads_last || (store && updates && !single) || (store && updates && single));
    bool stack = has(in->operands, "(%rsp") || has(in->operands, "(%rbp");
#endif
    if (load) {
        bump(reader, FEATURE_loads);
        reader->value[FEATURE_vector_loads] += vector;
        reader->value[FEATURE_reloads] += stack;
    }
    if (store) {
        bump(reader, FEATURE_stores);
        reader->value[FEATURE_vector_stores] += vector;
        reader->value[FEATURE_spills] += stack;
    }
    return (load ? IS_LOAD : 0) | (store ? IS_STORE : 0);
}

static unsigned count_arithmetic(struct reader *reader, const struct parsed *in)
{
    const char *name = in->name[0] == 'v' ? in->name + 1 : in->name;

    if (STARTS_ANY(name, "fmadd", "fmsub", "fnmadd", "fnmsub", "fmla", "fmls", "dpbf16", "pdpbusd",
                   "pdpwssd")) {
        bump(reader, FEATURE_fma);
        return IS_FMA;
    }
    if (STARTS_ANY(name, "mulp", "muls", "pmul", "fmul", "pmadd")) {
        bump(reader, FEATURE_fp_mul);
    } else if (STARTS_ANY(name, "addp", "adds", "subp", "subs", "padd", "psub", "fadd", "fsub",
                          "hadd")) {
        bump(reader, FEATURE_fp_add);
    } else if (STARTS_ANY(name, "div", "sqrt", "rcp", "rsqrt", "idiv", "fdiv", "fsqrt", "frecp",
                          "frsqrt", "sdiv", "udiv")) {
        bump(reader, FEATURE_div_sqrt);
    } else if (STARTS_ANY(name, "cvt", "fcvt", "scvtf", "ucvtf")) {
        bump(reader, FEATURE_converts);
    } else if (STARTS_ANY(name, "gather", "pgather", "scatter", "pscatter")) {
        bump(reader, FEATURE_gathers);
    } else if (STARTS_ANY(name, "broadcast", "pbroadcast", "dup", "ld1r")) {
        bump(reader, FEATURE_broadcasts);
    } else if (STARTS_ANY(name, "shuf", "perm", "unpck", "punpck", "pshuf", "blend", "pblend",
                          "insert", "extract", "pinsr", "pextr", "palign", "align", "zip", "uzp",
                          "trn", "ext", "movhl", "movlh", "movsldup", "movshdup", "compress",
                          "expand", "pcompress", "pexpand", "tbl")) {
        bump(reader, FEATURE_shuffles);
    }
    return 0;
}

// Takes the first function that the glue calls as the entry.
static void remember_entry(struct reader *reader, const char *operands)
{
    const char *open = strchr(operands, '<');
    size_t len = open ? strcspn(open + 1, "@>+") : 0;

    if (reader->is_glue && reader->entry[0] == '\0' && len > 0 && len < sizeof(reader->entry)) {
        memcpy(reader->entry, open + 1, len);
        reader->entry[len] = '\0';
    }
}

// Counts jumps and calls. The glue may reach the entry by a jump.
static unsigned count_control(struct reader *reader, const struct parsed *in)
{
    bool call =
        starts(in->name, "call") || strcmp(in->name, "bl") == 0 || strcmp(in->name, "blr") == 0;
#if defined(__aarch64__)
    bool jump = !call && (in->name[0] == 'b' && (in->name[1] == '\0' || in->name[1] == '.' ||
                                                 strcmp(in->name, "br") == 0));
    jump |= STARTS_ANY(in->name, "cbz", "cbnz", "tbz", "tbnz");
#else
    bool jump = in->name[0] == 'j' || starts(in->name, "loop");
#endif

    if (!call && !jump) {
        return 0;
    }
    remember_entry(reader, in->operands);
    if (!reader->counts) {
        return 0;
    }
    bump(reader, call ? FEATURE_calls : FEATURE_branches);
    if (jump) {
        // The operand is "1000 <f+0x10>"; some machines have a register and a comma before it.
        uint64_t target = strtoull(last_operand(in->operands), NULL, 16);
        if (target >= reader->start && target <= in->address && reader->loop_count < LOOPS_MAX) {
            bump(reader, FEATURE_loops);
            reader->loop[reader->loop_count++] = (struct loop){.from = target, .to = in->address};
        }
    }
    return call ? IS_CALL : 0;
}

static void keep_instruction(struct reader *reader, uint64_t address, unsigned kind)
{
    if (reader->instruction_count == reader->instruction_size) {
        reader->instruction_size = reader->instruction_size ? 2 * reader->instruction_size : 1024;
        reader->instruction =
            xrealloc(reader->instruction, reader->instruction_size, sizeof(*reader->instruction));
    }
    reader->instruction[reader->instruction_count++] =
        (struct instruction){.address = address, .kind = kind};
}

static void count_instruction(struct reader *reader, const struct parsed *in)
{
    if (starts(in->name, "nop") || (starts(in->name, "xchg") && starts(in->operands, "%ax,%ax"))) {
        return; // padding
    }
    unsigned kind = count_control(reader, in);
    if (!reader->counts) {
        return;
    }
    bump(reader, FEATURE_instructions);
    if (STARTS_ANY(in->name, "prefetch", "prfm")) {
        bump(reader, FEATURE_prefetches);
        return;
    }
    unsigned bits = vector_bits(in);
    if (bits == 128 && is_scalar(in->name)) {
        bits = 0;
        bump(reader, FEATURE_scalar_fp);
        kind |= count_arithmetic(reader, in);
    } else if (bits != 0) {
        bump(reader, bits == 512   ? FEATURE_vector_512
                     : bits == 256 ? FEATURE_vector_256
                                   : FEATURE_vector_128);
        kind |= IS_VECTOR | count_arithmetic(reader, in);
    } else if (STARTS_ANY(in->name, "div", "idiv", "sdiv", "udiv")) {
        bump(reader, FEATURE_div_sqrt);
    }
    kind |= count_memory(reader, in, bits != 0);
    keep_instruction(reader, in->address, kind);
}

// ---- functions ----

// Returns the number of loops around the address.
static unsigned depth_of(const struct reader *reader, uint64_t address)
{
    unsigned depth = 0;
    uint64_t outer = UINT64_MAX;

    // Several jumps back to one address, as `continue` makes them, are one loop.
    for (size_t i = 0; i < reader->loop_count; i++) {
        const struct loop *loop = &reader->loop[i];
        if (address >= loop->from && address <= loop->to && loop->from != outer) {
            depth++;
            outer = loop->from;
        }
    }
    return depth;
}

// Computing depths takes loops times instructions. A function with more than this is left out.
#define DEPTH_WORK_MAX ((size_t)50000000)

// Counts the instructions at the greatest depth of the current function.
static void count_inner(struct reader *reader)
{
    if (reader->loop_count == 0 ||
        reader->instruction_count > DEPTH_WORK_MAX / reader->loop_count) {
        return;
    }
    unsigned deepest = 0;
    for (size_t i = 0; i < reader->instruction_count; i++) {
        unsigned depth = depth_of(reader, reader->instruction[i].address);
        deepest = depth > deepest ? depth : deepest;
    }
    for (size_t i = 0; i < reader->instruction_count; i++) {
        unsigned kind = reader->instruction[i].kind;
        if (depth_of(reader, reader->instruction[i].address) != deepest) {
            continue;
        }
        bump(reader, FEATURE_inner_instructions);
        reader->value[FEATURE_inner_fma] += (kind & IS_FMA) != 0;
        reader->value[FEATURE_inner_vectors] += (kind & IS_VECTOR) != 0;
        reader->value[FEATURE_inner_loads] += (kind & IS_LOAD) != 0;
        reader->value[FEATURE_inner_stores] += (kind & IS_STORE) != 0;
        reader->value[FEATURE_inner_calls] += (kind & IS_CALL) != 0;
    }
    if (deepest > reader->value[FEATURE_loop_depth]) {
        reader->value[FEATURE_loop_depth] = deepest;
    }
}

static void end_function(struct reader *reader)
{
    if (reader->counts && reader->instruction_count > 0) {
        uint64_t bytes = reader->end >= reader->start ? reader->end - reader->start : 0;
        bump(reader, FEATURE_functions);
        reader->value[FEATURE_function_bytes] += (double)bytes;
        if (reader->function_count < ARRAY_LEN(reader->function)) {
            memcpy(reader->function[reader->function_count].name, reader->current,
                   sizeof(reader->current));
            reader->function[reader->function_count++].bytes = bytes;
        }
        count_inner(reader);
    }
    reader->instruction_count = 0;
    reader->loop_count = 0;
    reader->counts = reader->is_glue = false;
}

static void start_function(struct reader *reader, const char *line, uint64_t address)
{
    const char *open = strchr(line, '<');
    size_t len = open ? strcspn(open + 1, ">") : 0;

    reader->end = address;
    end_function(reader);
    len = len < sizeof(reader->current) ? len : sizeof(reader->current) - 1;
    if (len > 0) {
        memcpy(reader->current, open + 1, len);
    }
    reader->current[len] = '\0';
    reader->start = reader->end = address;
    reader->is_glue = strcmp(reader->current, "kcast_entry") == 0;
    reader->counts =
        !reader->is_glue && len > 0 && !has(reader->current, "@plt") && reader->current[0] != '.';
}

static bool is_prefix(const char *name)
{
    return STARTS_ANY(name, "rep", "lock", "bnd", "notrack", "data16", "cs", "ds", "addr32",
                      "{evex}", "{vex}") &&
           strlen(name) < 9 && strcmp(name, "csel") != 0;
}

// Parses "1000:\tmnemonic operands  # comment". Prefixes are skipped.
static bool parse_instruction(const char *line, struct parsed *ret)
{
    char *end;

    ret->address = strtoull(line, &end, 16);
    if (end == line || *end != ':') {
        return false;
    }
    const char *p = end + 1;
    size_t len;
    do {
        p += strspn(p, " \t");
        len = strcspn(p, " \t");
        if (len == 0 || len >= sizeof(ret->name)) {
            return false;
        }
        memcpy(ret->name, p, len);
        ret->name[len] = '\0';
        p += len;
    } while (is_prefix(ret->name) && *p != '\0');
    p += strspn(p, " \t");
    len = strcspn(p, "#");
    len = len < sizeof(ret->operands) ? len : sizeof(ret->operands) - 1;
    memcpy(ret->operands, p, len);
    ret->operands[len] = '\0';
    return true;
}

static void read_line(struct reader *reader, const char *line)
{
    struct parsed in;
    size_t digits = strspn(line, "0123456789abcdef");

    if (digits >= 8 && starts(line + digits, " <")) {
        start_function(reader, line, strtoull(line, NULL, 16));
    } else if (line[0] == ' ' && parse_instruction(line, &in) &&
               reader->total < FEATURES_INSTRUCTIONS_MAX) {
        reader->total++;
        // objdump does not show where the last instruction ends. The start of the next function
        // replaces this where there is one.
        reader->end = in.address + 1;
        count_instruction(reader, &in);
    }
}

void features_read(const char *text, size_t len, double ret[static FEATURE_COUNT])
{
    struct reader *reader = xcalloc(1, sizeof(*reader));

    memset(ret, 0, FEATURE_COUNT * sizeof(*ret));
    reader->value = ret;
    char line[LINE_MAX_BYTES];
    while (len > 0) {
        const char *newline = memchr(text, '\n', len);
        size_t whole = newline ? (size_t)(newline - text) : len;
        size_t part = whole < sizeof(line) ? whole : sizeof(line) - 1;

        memcpy(line, text, part);
        line[part] = '\0';
        read_line(reader, line);
        text += whole + (!!newline);
        len -= whole + (!!newline);
    }
    end_function(reader);
    for (size_t i = 0; i < reader->function_count; i++) {
        if (reader->entry[0] != '\0' && strcmp(reader->function[i].name, reader->entry) == 0) {
            ret[FEATURE_entry_bytes] = (double)reader->function[i].bytes;
        }
    }
    free(reader->instruction);
    free(reader);
}
