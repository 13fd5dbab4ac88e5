// What describes a tensor: types of elements, devices, lists of extents, options.
#pragma once
#include "kcast/number.hpp"
#include <initializer_list>

namespace c10 {

using std::nullopt;
using std::nullopt_t;
using std::optional;

enum class ScalarType : int8_t {
    Byte,
    Char,
    Short,
    Int,
    Long,
    Half,
    Float,
    Double,
    ComplexHalf,
    ComplexFloat,
    ComplexDouble,
    Bool,
    BFloat16 = 15,
    Float8_e5m2 = 23,
    Float8_e4m3fn,
    UInt16 = 27,
    UInt32,
    UInt64,
    Undefined = 100
};

// Name, type of C++, what PyTorch calls the type, bytes.
#define KCAST_TYPES(_)                                                                             \
    _(Byte, uint8_t, "unsigned char")                                                              \
    _(Char, int8_t, "signed char")                                                                 \
    _(Short, int16_t, "short int")                                                                 \
    _(Int, int, "int")                                                                             \
    _(Long, int64_t, "long int")                                                                   \
    _(Half, c10::Half, "c10::Half")                                                                \
    _(Float, float, "float")                                                                       \
    _(Double, double, "double")                                                                    \
    _(Bool, bool, "bool")                                                                          \
    _(BFloat16, c10::BFloat16, "c10::BFloat16")                                                    \
    _(UInt16, uint16_t, "short unsigned int")                                                      \
    _(UInt32, uint32_t, "unsigned int")                                                            \
    _(UInt64, uint64_t, "long unsigned int")

template <class T> struct CppTypeToScalarType;
template <ScalarType of> struct KcastCppType;
#define KCAST_TYPE(name, type, text)                                                               \
    template <> struct CppTypeToScalarType<type> {                                                 \
        static constexpr ScalarType value = ScalarType::name;                                      \
    };                                                                                             \
    template <> struct KcastCppType<ScalarType::name> {                                            \
        using t = type;                                                                            \
    };
KCAST_TYPES(KCAST_TYPE)
#undef KCAST_TYPE

namespace impl {
template <ScalarType of> struct ScalarTypeToCPPType : KcastCppType<of> {};
template <ScalarType of> using ScalarTypeToCPPTypeT = typename KcastCppType<of>::t;
} // namespace impl

inline const char *toString(ScalarType type)
{
    switch (type) {
#define KCAST_TYPE(name, cpp, text)                                                                \
    case ScalarType::name:                                                                         \
        return #name;
        KCAST_TYPES(KCAST_TYPE)
#undef KCAST_TYPE
    case ScalarType::Float8_e5m2:
        return "Float8_e5m2";
    case ScalarType::Float8_e4m3fn:
        return "Float8_e4m3fn";
    case ScalarType::ComplexHalf:
        return "ComplexHalf";
    case ScalarType::ComplexFloat:
        return "ComplexFloat";
    case ScalarType::ComplexDouble:
        return "ComplexDouble";
    default:
        return "Undefined";
    }
}

inline size_t elementSize(ScalarType type)
{
    switch (type) {
#define KCAST_TYPE(name, cpp, text)                                                                \
    case ScalarType::name:                                                                         \
        return sizeof(cpp);
        KCAST_TYPES(KCAST_TYPE)
#undef KCAST_TYPE
    case ScalarType::Float8_e5m2:
    case ScalarType::Float8_e4m3fn:
        return 1;
    case ScalarType::ComplexHalf:
        return 4;
    case ScalarType::ComplexFloat:
        return 8;
    case ScalarType::ComplexDouble:
        return 16;
    default:
        return 0;
    }
}

inline bool isFloatingType(ScalarType type)
{
    return type == ScalarType::Half || type == ScalarType::Float || type == ScalarType::Double ||
           type == ScalarType::BFloat16 || type == ScalarType::Float8_e5m2 ||
           type == ScalarType::Float8_e4m3fn;
}

inline bool isIntegralType(ScalarType type, bool with_bool)
{
    return (with_bool && type == ScalarType::Bool) ||
           (static_cast<int>(type) >= 0 && type <= ScalarType::Long) ||
           (type >= ScalarType::UInt16 && type <= ScalarType::UInt64);
}

inline void append_text(std::string &out, ScalarType type) { out += toString(type); }

#define KCAST_CONSTANT(name, type) constexpr ScalarType name = ScalarType::type;
KCAST_CONSTANT(kByte, Byte)
KCAST_CONSTANT(kUInt8, Byte)
KCAST_CONSTANT(kChar, Char)
KCAST_CONSTANT(kInt8, Char)
KCAST_CONSTANT(kShort, Short)
KCAST_CONSTANT(kInt16, Short)
KCAST_CONSTANT(kInt, Int)
KCAST_CONSTANT(kInt32, Int)
KCAST_CONSTANT(kLong, Long)
KCAST_CONSTANT(kInt64, Long)
KCAST_CONSTANT(kHalf, Half)
KCAST_CONSTANT(kFloat16, Half)
KCAST_CONSTANT(kFloat, Float)
KCAST_CONSTANT(kFloat32, Float)
KCAST_CONSTANT(kDouble, Double)
KCAST_CONSTANT(kFloat64, Double)
KCAST_CONSTANT(kBool, Bool)
KCAST_CONSTANT(kBFloat16, BFloat16)
KCAST_CONSTANT(kFloat8_e5m2, Float8_e5m2)
KCAST_CONSTANT(kFloat8_e4m3fn, Float8_e4m3fn)
KCAST_CONSTANT(kUInt16, UInt16)
KCAST_CONSTANT(kUInt32, UInt32)
KCAST_CONSTANT(kUInt64, UInt64)
#undef KCAST_CONSTANT

enum class DeviceType : int8_t { CPU, CUDA };
using DeviceIndex = int8_t;
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

class Device {
    DeviceType kind;
    DeviceIndex number;

  public:
    Device() : Device(DeviceType::CPU) {}
    Device(DeviceType type, DeviceIndex index = -1) : kind(type), number(index) {}
    Device(const std::string &text) : kind(DeviceType::CPU), number(-1)
    {
        size_t colon = text.find(':');
        std::string type = text.substr(0, colon);

        TORCH_CHECK(type == "cpu" || type == "cuda", "Invalid device string: '", text, "'");
        kind = type == "cuda" ? DeviceType::CUDA : DeviceType::CPU;
        if (colon != std::string::npos) {
            number = static_cast<DeviceIndex>(std::strtol(text.c_str() + colon + 1, nullptr, 10));
        }
    }
    Device(const char *text) : Device(std::string(text)) {}
    DeviceType type() const { return kind; }
    DeviceIndex index() const { return number; }
    bool has_index() const { return number >= 0; }
    bool is_cuda() const { return kind == DeviceType::CUDA; }
    bool is_cpu() const { return kind == DeviceType::CPU; }
    bool operator==(const Device &other) const
    {
        return kind == other.kind && number == other.number;
    }
    bool operator!=(const Device &other) const { return !(*this == other); }
    std::string str() const
    {
        std::string text = is_cuda() ? "cuda" : "cpu";

        return number >= 0 ? text + ":" + std::to_string(number) : text;
    }
};

inline void append_text(std::string &out, const Device &device) { out += device.str(); }
inline void append_text(std::string &out, DeviceType type) { out += Device(type).str(); }

enum class Layout : int8_t { Strided };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

// Elements that lie elsewhere.
template <class T> class ArrayRef {
    const T *first;
    size_t count;

  public:
    using value_type = T;
    using iterator = const T *;
    using const_iterator = const T *;

    constexpr ArrayRef() : first(nullptr), count(0) {}
    constexpr ArrayRef(const T &one) : first(&one), count(1) {}
    constexpr ArrayRef(const T *data, size_t length) : first(data), count(length) {}
    constexpr ArrayRef(const T *begin, const T *end)
        : first(begin), count(static_cast<size_t>(end - begin))
    {
    }
    ArrayRef(const std::vector<T> &from) : first(from.data()), count(from.size()) {}
    constexpr ArrayRef(const std::initializer_list<T> &from)
        : first(std::data(from)), count(from.size())
    {
    }
    template <size_t N> constexpr ArrayRef(const T (&from)[N]) : first(from), count(N) {}
    constexpr const T *data() const { return first; }
    constexpr size_t size() const { return count; }
    constexpr bool empty() const { return count == 0; }
    constexpr const T *begin() const { return first; }
    constexpr const T *end() const { return first + count; }
    constexpr const T &front() const { return first[0]; }
    constexpr const T &back() const { return first[count - 1]; }
    constexpr const T &operator[](size_t at) const { return first[at]; }
    const T &at(size_t place) const
    {
        TORCH_CHECK(place < count, "ArrayRef: invalid index Index = ", place, "; Length = ", count);
        return first[place];
    }
    std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
    ArrayRef slice(size_t from, size_t length) const { return ArrayRef(first + from, length); }
    ArrayRef slice(size_t from) const { return slice(from, count - from); }
    bool equals(ArrayRef other) const
    {
        for (size_t i = 0; count == other.count && i < count; i++) {
            if (!(first[i] == other.first[i])) {
                return false;
            }
        }
        return count == other.count;
    }
};

template <class T> bool operator==(ArrayRef<T> a, ArrayRef<T> b) { return a.equals(b); }
template <class T> bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !a.equals(b); }
template <class T> bool operator==(const std::vector<T> &a, ArrayRef<T> b) { return b.equals(a); }
template <class T> bool operator==(ArrayRef<T> a, const std::vector<T> &b) { return a.equals(b); }
template <class T> void append_text(std::string &out, ArrayRef<T> list)
{
    out += "[";
    for (size_t i = 0; i < list.size(); i++) {
        using kcast::append_text;
        append_text(out, i > 0 ? ", " : "");
        append_text(out, list[i]);
    }
    out += "]";
}

using IntArrayRef = ArrayRef<int64_t>;

// A number of Python's.
class Scalar {
    enum { BOOL, INT, FLOAT } kind = INT;
    int64_t whole = 0;
    double real = 0;

  public:
    Scalar() = default;
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>> Scalar(T value)
        : kind(std::is_same_v<T, bool> ? BOOL : std::is_integral_v<T> ? INT : FLOAT),
          whole(static_cast<int64_t>(value)), real(static_cast<double>(value))
    {
    }
    Scalar(Half value) : Scalar(static_cast<float>(value)) {}
    Scalar(BFloat16 value) : Scalar(static_cast<float>(value)) {}
    bool isFloatingPoint() const { return kind == FLOAT; }
    bool isBoolean() const { return kind == BOOL; }
    bool isIntegral(bool with_bool) const { return kind == INT || (with_bool && kind == BOOL); }
    template <class T> T to() const
    {
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(kind == FLOAT ? static_cast<int64_t>(real) : whole);
        } else {
            return static_cast<T>(real);
        }
    }
    double toDouble() const { return to<double>(); }
    float toFloat() const { return to<float>(); }
    int64_t toLong() const { return to<int64_t>(); }
    int toInt() const { return to<int>(); }
    bool toBool() const { return real != 0; }
};

} // namespace c10

// The type of elements as Tensor::dtype() has it, which is a ScalarType in most uses.
namespace caffe2 {

class TypeMeta {
    c10::ScalarType type = c10::ScalarType::Undefined;

  public:
    TypeMeta() = default;
    TypeMeta(c10::ScalarType of) : type(of) {}
    template <class T> static TypeMeta Make() { return c10::CppTypeToScalarType<T>::value; }
    c10::ScalarType toScalarType() const { return type; }
    size_t itemsize() const { return c10::elementSize(type); }
    const char *name() const
    {
        switch (type) {
#define KCAST_TYPE(name, cpp, text)                                                                \
    case c10::ScalarType::name:                                                                    \
        return text;
            KCAST_TYPES(KCAST_TYPE)
#undef KCAST_TYPE
        default:
            return c10::toString(type);
        }
    }
    template <class T> bool Match() const { return type == c10::CppTypeToScalarType<T>::value; }
    friend bool operator==(TypeMeta a, TypeMeta b) { return a.type == b.type; }
    friend bool operator!=(TypeMeta a, TypeMeta b) { return a.type != b.type; }
};

inline void append_text(std::string &out, TypeMeta type) { out += type.name(); }
template <class T> c10::ScalarType dtype_of() { return c10::CppTypeToScalarType<T>::value; }

} // namespace caffe2

namespace c10 {

inline ScalarType typeMetaToScalarType(caffe2::TypeMeta type) { return type.toScalarType(); }
inline caffe2::TypeMeta scalarTypeToTypeMeta(ScalarType type) { return type; }

// How a tensor is to be made. What is not said is PyTorch's default.
class TensorOptions {
    optional<ScalarType> type_;
    optional<Device> device_;
    optional<bool> grad_;

  public:
    TensorOptions() = default;
    TensorOptions(ScalarType type) : type_(type) {}
    TensorOptions(caffe2::TypeMeta type) : type_(type.toScalarType()) {}
    TensorOptions(Device device) : device_(device) {}
    TensorOptions(DeviceType type) : device_(Device(type)) {}
    TensorOptions(const char *device) : device_(Device(device)) {}
    [[nodiscard]] TensorOptions dtype(ScalarType type) const
    {
        TensorOptions made = *this;

        made.type_ = type;
        return made;
    }
    [[nodiscard]] TensorOptions dtype(caffe2::TypeMeta type) const
    {
        return dtype(type.toScalarType());
    }
    template <class T> TensorOptions &dtype()
    {
        type_ = CppTypeToScalarType<T>::value;
        return *this;
    }
    [[nodiscard]] TensorOptions device(Device device) const
    {
        TensorOptions made = *this;

        made.device_ = device;
        return made;
    }
    [[nodiscard]] TensorOptions device(DeviceType type, DeviceIndex index) const
    {
        return device(Device(type, index));
    }
    [[nodiscard]] TensorOptions requires_grad(optional<bool> grad) const
    {
        TensorOptions made = *this;

        made.grad_ = grad;
        return made;
    }
    [[nodiscard]] TensorOptions layout(optional<Layout>) const { return *this; }
    caffe2::TypeMeta dtype() const { return type_.value_or(ScalarType::Float); }
    Device device() const { return device_.value_or(Device(DeviceType::CPU)); }
    bool has_dtype() const { return type_.has_value(); }
    bool has_device() const { return device_.has_value(); }
    bool requires_grad() const { return grad_.value_or(false); }
    optional<ScalarType> dtype_opt() const { return type_; }
    optional<Device> device_opt() const { return device_; }
};

inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(caffe2::TypeMeta type) { return TensorOptions(type); }
inline TensorOptions device(Device device) { return TensorOptions(device); }
inline TensorOptions requires_grad(bool grad = true) { return TensorOptions().requires_grad(grad); }

} // namespace c10

namespace at {
using namespace c10;
} // namespace at
