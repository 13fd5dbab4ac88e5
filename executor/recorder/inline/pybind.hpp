// PYBIND11_MODULE, for sources that name their functions themselves: functions, and lambdas that
// capture nothing, with what they are for, and names and usual values of their arguments.
#pragma once
#include "kcast/bind.hpp"
#include <functional>

namespace kcast {

struct Parameter {
    const char *name;
    bool usual; // it has a value unless it is given
    Packed value;
};

struct Bound {
    std::string name, doc;
    std::vector<Parameter> parameter; // empty: by their places only
    std::function<int(const Value *, int64_t)> function;

    // Arguments by place come first. Returns as run does.
    int call(const Value *values, int64_t count)
    {
        std::vector<Value> given;
        std::vector<bool> known(parameter.size());
        int64_t placed = 0;

        while (placed < count && !values[placed].keyword) {
            given.push_back(values[placed++]);
        }
        given.resize(std::max(given.size(), parameter.size()));
        std::fill(known.begin(), known.begin() + std::min<size_t>(placed, known.size()), true);
        for (int64_t i = placed; i < count; i++) {
            size_t at = 0;

            while (at < parameter.size() && strcmp(parameter[at].name, values[i].keyword) != 0) {
                at++;
            }
            if (at == parameter.size() || known[at]) {
                return refuse(at < parameter.size() ? "() has two values for argument "
                                                    : "() has no argument ",
                              values[i].keyword);
            }
            given[at] = values[i];
            known[at] = true;
        }
        for (size_t at = 0; at < parameter.size(); at++) {
            if (!known[at] && !parameter[at].usual) {
                return refuse("() needs argument ", parameter[at].name);
            }
            if (!known[at]) {
                given[at] = parameter[at].value.finish();
            }
        }
        return function(given.data(), static_cast<int64_t>(given.size()));
    }

  private:
    int refuse(const char *what, const char *which) const
    {
        host->fail("TypeError", text_of(name, what, which).c_str());
        return 1;
    }
};

inline std::vector<Bound> bound;

// What a function may be defined with beside its name.
inline void describe(Bound &made, const char *doc) { made.doc = doc; }
inline void describe(Bound &made, Parameter parameter)
{
    made.parameter.push_back(std::move(parameter));
}

} // namespace kcast

namespace pybind11 {

struct none {};

struct arg : kcast::Parameter {
    explicit arg(const char *called) : Parameter{called, false, {}} {}
    template <class T> kcast::Parameter operator=(const T &given) const
    {
        if constexpr (std::is_same_v<T, none> || std::is_same_v<T, std::nullopt_t>) {
            return {name, true, {}};
        } else {
            return {name, true, kcast::pack(given)};
        }
    }
};

namespace literals {
inline arg operator""_a(const char *name, size_t) { return arg(name); }
} // namespace literals

class module_ {
    std::string text;

  public:
    template <class F, class... More> module_ &def(const char *name, F function, const More &...more)
    {
        auto *pointer = +function;
        std::string called = name;
        kcast::Bound made{called, "", {}, [=](const kcast::Value *values, int64_t count) {
                              return kcast::run(called.c_str(), pointer, values, count);
                          }};

        (kcast::describe(made, more), ...);
        kcast::bound.push_back(std::move(made));
        return *this;
    }
    std::string &doc() { return text; }
};
using module = module_;

} // namespace pybind11
namespace py = pybind11;

#define PYBIND11_MODULE(of, variable)                                                              \
    static void kcast_define(pybind11::module_ &);                                                 \
    KCAST_EXPORT void kcast_bind()                                                                 \
    {                                                                                              \
        pybind11::module_ made;                                                                    \
        kcast_define(made);                                                                        \
    }                                                                                              \
    KCAST_EXPORT int64_t kcast_bound_count()                                                       \
    {                                                                                              \
        return static_cast<int64_t>(kcast::bound.size());                                          \
    }                                                                                              \
    KCAST_EXPORT const char *kcast_bound_name(int64_t i) { return kcast::bound[i].name.c_str(); }  \
    KCAST_EXPORT const char *kcast_bound_doc(int64_t i) { return kcast::bound[i].doc.c_str(); }    \
    KCAST_EXPORT int kcast_bound_call(int64_t i, const kcast::Value *values, int64_t count)        \
    {                                                                                              \
        return kcast::bound[i].call(values, count);                                                \
    }                                                                                              \
    static void kcast_define([[maybe_unused]] pybind11::module_ &variable)
