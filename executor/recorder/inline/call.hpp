// Calls of the interpreter: what they are given, and what they give.
#pragma once
#include "kcast/type.hpp"

namespace at {
class Tensor;
}

namespace kcast {

// An argument of a call, which refers to what it was made of.
struct Argument : Value {
    Argument() : Value() {}
    Argument(const at::Tensor &tensor); // none when it is undefined
    Argument(bool from) : Argument(BOOL, from) {}
    Argument(int from) : Argument(INT, from) {}
    Argument(int64_t from) : Argument(INT, from) {}
    Argument(double from) : Argument(FLOAT, 0) { f = from; }
    Argument(c10::ScalarType from) : Argument(DTYPE, static_cast<int64_t>(from)) {}
    Argument(c10::MemoryFormat from) : Argument(FORMAT, static_cast<int64_t>(from)) {}
    Argument(const char *from) : Argument(TEXT, 0)
    {
        p = from;
        count = static_cast<int64_t>(strlen(from));
    }
    Argument(const c10::Device &from) : Argument(DEVICE, from.index())
    {
        count = static_cast<int64_t>(from.type());
    }
    Argument(const c10::Scalar &from) : Argument(BOOL, from.toLong())
    {
        if (from.isFloatingPoint()) {
            kind = FLOAT;
            f = from.toDouble();
        } else if (!from.isBoolean()) {
            kind = INT;
        }
    }
    Argument(c10::IntArrayRef from) : Argument(INTS, 0)
    {
        p = from.data();
        count = static_cast<int64_t>(from.size());
    }
    Argument(const std::vector<at::Tensor> &from);
    template <class T> Argument(const std::optional<T> &from) : Argument()
    {
        if (from) {
            *this = Argument(*from);
        }
    }

  private:
    Argument(Kind of, int64_t bits) : Value()
    {
        kind = of;
        i = bits;
    }
};

template <class T> Argument named(const char *keyword, const T &from)
{
    Argument made(from);

    made.keyword = keyword;
    return made;
}

// What a call gives, until the next call.
class Answer {
    const char *name;
    Value value;

    void check(bool right) const
    {
        TORCH_CHECK(right, name, " has a result of another kind in this PyTorch");
    }

  public:
    Answer(const char *of, const Value &from) : name(of), value(from) {}
    operator at::Tensor() const;
    operator int64_t() const
    {
        check(value.kind == INT);
        return value.i;
    }
    operator bool() const
    {
        check(value.kind == BOOL);
        return value.i != 0;
    }
    c10::Scalar scalar() const
    {
        check(value.kind == FLOAT || value.kind == INT || value.kind == BOOL);
        return value.kind == FLOAT  ? c10::Scalar(value.f)
               : value.kind == BOOL ? c10::Scalar(value.i != 0)
                                    : c10::Scalar(value.i);
    }
    std::tuple<at::Tensor, at::Tensor> pair() const;
};

// Calls a method (".name", of the first argument) or a function of torch.
inline Answer ask(const char *name, std::initializer_list<Argument> arguments)
{
    Value answer = {};

    static_assert(sizeof(Argument) == sizeof(Value), "arguments are an array of values");
    if (host->call(name, arguments.begin(), static_cast<int64_t>(arguments.size()), &answer) != 0) {
        throw Raised(std::string(static_cast<const char *>(answer.p),
                                 static_cast<size_t>(answer.count)));
    }
    return Answer(name, answer);
}

} // namespace kcast
