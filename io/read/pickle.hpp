// Python's pickles as data: the values that they hold, and nothing that they would run. An object
// is kept as its constructor's name and arguments, and never built.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/function_ref.hpp"

namespace attn::io {

struct PickleValue {
    enum class Kind {
        other,  ///< None, booleans, floating-point numbers, integers of more than 64 bits
        integer,
        text,  ///< also bytes
        list,
        tuple,
        dictionary,
        global,     ///< a class or function
        object,     ///< what a global would make of arguments
        persistent  ///< what is outside the pickle
    };

    Kind kind = Kind::other;
    std::int64_t integer = 0;
    std::string text = {};  ///< of a global its full name, "torch.FloatStorage"
    /// Of dictionaries, keys and values by turns; of objects, the global and the tuple of
    /// arguments; of what is persistent, its id. Values may share items, and hold themselves.
    std::vector<PickleValue*> items = {};
};

struct Pickle {
    std::deque<PickleValue> values;  ///< in the order of the file
    const PickleValue* value = nullptr;
    std::size_t size = 0;  ///< bytes that it takes
};

/// Most bytes of a pickle, and values in it.
inline constexpr std::size_t max_pickle_length = std::size_t{1} << 25,
                             max_pickle_values = std::size_t{1} << 21;

/// The pickle that the bytes begin with, of the opcodes that protocols 2 to 5 have for such values.
/// `check` is called with the name of each global, and throws for those that are not expected. An
/// OrderedDict is a dictionary, without its attributes. Errors: kind input at `location`.
Pickle read_pickle(std::string_view bytes, const std::string& location,
                   FunctionRef<void(const std::string& global)> check);

}  // namespace attn::io
