// Makes the functions of a candidate callable by the interpreter. The file with their declarations
// ends with KCAST_OPEN and one KCAST_FUNCTION for each.
#pragma once
#include "kcast/tensor.hpp"

namespace kcast {

template <class T> struct Parts { // what a type is made of, as far as that matters here
    static constexpr bool optional = false, vector = false, tuple = false;
    static constexpr bool number = std::is_arithmetic_v<T>;
    static constexpr bool plain = std::is_same_v<T, at::Tensor> || std::is_same_v<T, c10::Scalar> ||
                                  std::is_same_v<T, c10::ScalarType> ||
                                  std::is_same_v<T, c10::Device>;
};
template <class T> struct Parts<std::optional<T>> : Parts<void> {
    static constexpr bool optional = true;
};
template <class T> struct Parts<std::vector<T>> : Parts<void> {
    static constexpr bool vector = true;
};
template <class... T> struct Parts<std::tuple<T...>> : Parts<void> {
    static constexpr bool tuple = true;
};
template <class A, class B> struct Parts<std::pair<A, B>> : Parts<void> {
    static constexpr bool tuple = true;
};
template <class T> constexpr bool never = false;

// A result: a value with the memory that it refers to.
struct Packed {
    Value value = {};
    std::vector<Packed> part;
    std::vector<Value> list;
    std::string text;

    // The value, which is right until this is moved or goes.
    const Value &finish()
    {
        if (value.kind == TEXT) {
            value.p = text.data();
            value.count = static_cast<int64_t>(text.size());
        } else if (value.kind == LIST) {
            list.clear();
            for (Packed &each : part) {
                list.push_back(each.finish());
            }
            value.p = list.data();
            value.count = static_cast<int64_t>(list.size());
        }
        return value;
    }
};

template <class T> Packed pack(const T &from)
{
    Packed made;

    if constexpr (Parts<T>::number) {
        if constexpr (std::is_same_v<T, bool>) {
            made.value = Argument(from);
        } else if constexpr (std::is_integral_v<T>) {
            made.value = Argument(static_cast<int64_t>(from));
        } else {
            made.value = Argument(static_cast<double>(from));
        }
    } else if constexpr (Parts<T>::plain) {
        made.value = Argument(from);
    } else if constexpr (Parts<T>::optional) {
        return from ? pack(*from) : made;
    } else if constexpr (Parts<T>::vector) {
        made.value.kind = LIST;
        for (const auto &each : from) {
            made.part.push_back(pack(each));
        }
    } else if constexpr (Parts<T>::tuple) {
        made.value.kind = LIST;
        made.value.is_tuple = 1;
        std::apply([&](const auto &...each) { (made.part.push_back(pack(each)), ...); }, from);
    } else if constexpr (std::is_convertible_v<T, std::string>) {
        made.value.kind = TEXT;
        made.text = from;
    } else {
        static_assert(never<T>, "a type that these headers do not hand to Python");
    }
    return made;
}

template <class T> bool take_all(const Value &value, T &out)
{
    const Value *each = static_cast<const Value *>(value.p);

    if (value.kind != LIST || value.count != static_cast<int64_t>(std::tuple_size_v<T>)) {
        return false;
    }
    return std::apply([&](auto &...one) { return (take(*each++, one) && ...); }, out);
}

// Makes an object of a value. Returns false when the value is of another kind.
template <class T> bool take(const Value &value, T &out)
{
    if constexpr (std::is_same_v<T, at::Tensor>) {
        if (value.kind != TENSOR) {
            return false;
        }
        out = tensor_of(value);
    } else if constexpr (std::is_same_v<T, bool>) {
        out = value.i != 0;
        return value.kind == BOOL;
    } else if constexpr (std::is_integral_v<T>) {
        out = static_cast<T>(value.i);
        return (value.kind == INT || value.kind == BOOL) &&
               static_cast<int64_t>(out) == value.i && (out >= T(0)) == (value.i >= 0);
    } else if constexpr (std::is_floating_point_v<T>) {
        out = static_cast<T>(value.kind == FLOAT ? value.f : static_cast<double>(value.i));
        return value.kind == FLOAT || value.kind == INT || value.kind == BOOL;
    } else if constexpr (std::is_same_v<T, c10::Scalar>) {
        out = value.kind == FLOAT  ? c10::Scalar(value.f)
              : value.kind == BOOL ? c10::Scalar(value.i != 0)
                                   : c10::Scalar(value.i);
        return value.kind == FLOAT || value.kind == INT || value.kind == BOOL;
    } else if constexpr (std::is_same_v<T, c10::ScalarType>) {
        out = static_cast<c10::ScalarType>(value.i);
        return value.kind == DTYPE;
    } else if constexpr (std::is_same_v<T, c10::Device>) {
        out = c10::Device(static_cast<c10::DeviceType>(value.count),
                          static_cast<c10::DeviceIndex>(value.i));
        return value.kind == DEVICE;
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (value.kind != TEXT) {
            return false;
        }
        out.assign(static_cast<const char *>(value.p), static_cast<size_t>(value.count));
    } else if constexpr (Parts<T>::optional) {
        if (value.kind == NONE) {
            out.reset();
            return true;
        }
        return take(value, out.emplace());
    } else if constexpr (Parts<T>::vector) {
        const Value *each = static_cast<const Value *>(value.p);

        if (value.kind != LIST) {
            return false;
        }
        for (int64_t i = 0; i < value.count; i++) {
            typename T::value_type one{};

            if (!take(each[i], one)) {
                return false;
            }
            out.push_back(std::move(one));
        }
    } else if constexpr (Parts<T>::tuple) {
        return take_all(value, out);
    } else {
        static_assert(never<T>, "a type that these headers do not take from Python");
    }
    return true;
}

// Where an argument lies while the function runs.
template <class T> struct Stored {
    using type = T;
};
template <class T> struct Stored<c10::ArrayRef<T>> {
    using type = std::vector<T>;
};
template <class T>
using Kept = typename Stored<std::remove_cv_t<std::remove_reference_t<T>>>::type;

// What Python takes for a number of this type: a tensor of one element, and for bool any number.
inline Value number_of(const Value &value, bool is_bool, bool is_integral)
{
    Value made = value;

    if (value.kind == TENSOR) {
        const at::Tensor one = tensor_of(value);

        if (is_bool) {
            made = Argument(static_cast<bool>(ask(".__bool__", {one})));
        } else if (is_integral) {
            made = Argument(static_cast<int64_t>(ask(".__index__", {one})));
        } else {
            made = Argument(ask(".__float__", {one}).scalar().toDouble());
        }
    } else if (is_bool && (value.kind == NONE || value.kind == INT || value.kind == FLOAT)) {
        made = Argument(value.kind == FLOAT ? value.f != 0 : value.i != 0);
    }
    return made;
}

template <class T> bool take_argument(const Value &value, T &out)
{
    if constexpr (std::is_arithmetic_v<T>) {
        return take(number_of(value, std::is_same_v<T, bool>, std::is_integral_v<T>), out);
    } else {
        return take(value, out);
    }
}

template <class R, class... P, size_t... I>
void run(const char *name, R (*function)(P...), const Value *values, std::index_sequence<I...>)
{
    std::tuple<Kept<P>...> kept;
    size_t right = 0;

    (void)((take_argument(values[I], std::get<I>(kept)) && ++right) && ...);
    if (right < sizeof...(P)) {
        throw c10::TypeError(text_of(name, "(): argument ", right + 1,
                                     " is of a type that the function does not take"));
    }
    if constexpr (std::is_void_v<R>) {
        Value none = {};

        function(static_cast<P>(std::get<I>(kept))...);
        host->give(&none);
    } else {
        const R result = function(static_cast<P>(std::get<I>(kept))...);
        Packed packed = pack(result);

        host->give(&packed.finish());
    }
}

// Returns 0 when there is a result, 1 when a failure was told, 2 when Python has raised it.
template <class R, class... P>
int run(const char *name, R (*function)(P...), const Value *values, int64_t count)
{
    try {
        if (count != static_cast<int64_t>(sizeof...(P))) {
            throw c10::TypeError(
                text_of(name, "() takes ", sizeof...(P), " arguments and was given ", count));
        }
        run(name, function, values, std::index_sequence_for<P...>());
        return 0;
    } catch (const Raised &) {
        return 2;
    } catch (const c10::Error &error) {
        host->fail(error.python_name(), error.what());
    } catch (const std::out_of_range &error) {
        host->fail("IndexError", error.what());
    } catch (const std::exception &error) {
        host->fail("RuntimeError", error.what());
    } catch (...) {
        host->fail("RuntimeError", "Caught an unknown exception!");
    }
    return 1;
}

} // namespace kcast

#define KCAST_EXPORT extern "C" __attribute__((visibility("default")))
#define KCAST_FUNCTION(number, name)                                                               \
    KCAST_EXPORT int kcast_function_##number(const kcast::Value *values, int64_t count)            \
    {                                                                                              \
        return kcast::run(#name, &name, values, count);                                            \
    }
#define KCAST_OPEN                                                                                 \
    KCAST_EXPORT void kcast_open(const kcast::Host *host) { kcast::host = host; }
