// Builds a request from flags, a request document, a model and the environment.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/request/request.hpp"
#include "core/base/recent.hpp"
#include "io/read/input_file.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {

// Stages add to a request. The first stage to set a key wins: the command line, the request's
// document, files of flags, the environment, then the model. In a batch the document takes
// precedence over the command line.

/// Stores the value of a request document's key, unless a flag has set the option. `location` is
/// the key's location, `unread` the arrays that --ignore-arrays would have to leave out, or empty.
/// Errors: kind usage; an unknown key names the nearest known one.
void apply_key(Request& request, const std::string& key, const nlohmann::json& value,
               const Location& location, const std::string& unread = {});

/// Stores a value that a model or attn wrote at `location`. Errors: kind input.
void apply_value(Request& request, const std::string& key, const nlohmann::json& value,
                 const std::string& location);

/// Applies the environment flags that the request's mode has; call it once the mode is known.
/// Errors: kind usage.
void apply_deferred(Request& request);

/// Applies the settings of the result of --config that are among those `asked`, unless they are
/// given. Errors: kind usage.
void apply_settings_of_result(Request& request, const nlohmann::json& asked);

/// Applies ATTN_KERNEL if neither a flag nor a key specifies a kernel. Errors: kind usage.
void apply_environment(Request& request);

/// Sets what --device and --gpu are shorthands of. Errors: kind usage if such a setting is given
/// too, with another value.
void apply_shorthands(Request& request);

/// Checks that the request's mode has every setting that is given, such as a batch's defaults.
/// Errors: kind usage.
void check_defaults(const Request& request);

/// The request with the given flags. Errors: kind usage.
Request with_flags(Request request, const Args& args);

/// The request of the words MODE [INPUT], the first of which must be a mode's name. Errors: kind
/// usage.
Request request_of_mode(const std::vector<std::string>& words);

/// What may precede INPUT in the words of a command.
struct ModeWords {
    std::string command;              ///< the location of an error without words
    std::string instead = {};         ///< of MODE INPUT: "a request", one file; empty: nothing
    std::string missing = "no mode";  ///< the error without words
};

/// The request of MODE [INPUT], or of the file given instead, whose request has no mode yet.
/// Errors: kind usage.
Request request_of_words(const std::vector<std::string>& words, const ModeWords& form);

/// The only kernel that records each step and each mask.
inline constexpr std::string_view recording_kernel = "reference";

/// Errors: kind usage for a request of another kernel.
void require_recording_kernel(const Request& request);

/// The request for one question, from the words and flags of a mode's command. Errors: kind usage.
Request make_request(const Args& args);

// The names of arrays in a file, or of members in a request: PyTorch's and other programs' mean the
// same in both.

/// The key that a name means in this mode, for an array of so many axes; 0: not an array. Empty if
/// there is none. A name of an array that attn writes means no other key.
std::string key_meant(std::string_view name, Mode mode, std::size_t axes);

/// Whether the name is that of a result, and no key of any mode: then no question reads it.
bool names_result(std::string_view name);

/// Whether --ignore-arrays has the name.
bool is_ignored(const Request& request, std::string_view name);

/// Stores the name of a key's array. Errors: kind usage at `location` for a key that has one.
void take_name(Request& request, const std::string& key, const std::string& name,
               const std::string& location);

/// The note on arrays that are results.
std::string note_of_results(const std::string& file, const std::vector<std::string>& names);

/// The operands of a mode that a request may hold as arrays.
using IsOperand = bool (*)(std::string_view key, Mode mode);

/// Adds the settings of a request document and the locations of its arrays, unless a flag has set
/// them. `location` is the document's location in errors. Returns the names of arrays that are
/// results, which are not read. Errors: kinds usage and input.
std::vector<std::string> apply_document(Request& request, const io::JsonDocument& document,
                                        const std::string& location, IsOperand is_operand);

/// Whether a member's value is the elements of an operand: an array, and not the flat list of
/// constants that some options take.
bool holds_elements(const io::JsonDocument& document, const io::JsonMember& member);

/// Takes the id in a document, unless it is null. Errors: as id_in.
void apply_id(Request& request, const io::JsonDocument& document, const io::JsonMember& member);

/// The id in a document, as JSON; empty for null. Errors: kind input.
std::string id_in(const io::JsonDocument& document, const io::JsonMember& member);

/// Reads the results that an index of attn batch --out-dir names. It keeps files open, since the
/// lines of an index name the same file many times, and may be read in another order.
class IndexedResults {
public:
    /// The arrays that a line of an index names; another line is returned as it is. Errors: kind
    /// input if the file lacks them; kind io if it cannot be read.
    io::InputFile result_of(io::InputFile line);

private:
    Recent<std::string, std::shared_ptr<const io::InputFile>> parts_{
        [] { return std::size_t{64}; }};  ///< by path
};

}  // namespace attn::cli
