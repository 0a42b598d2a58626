// Reads the operands of a question, and finds what labels and words mean.
#pragma once

#include "cli/args/args.hpp"
#include "cli/question/layer_source.hpp"
#include "core/base/error.hpp"
#include "core/base/real_array.hpp"
#include "io/read/number_array.hpp"

namespace attn::cli {

/// Takes booleans for a boolean mask, and asks for the kind of a mask of the numbers 0 and 1.
class MaskKinds {
public:
    /// `layout`: of a result whose question is asked again, which holds booleans as 1 and 0, and
    /// lists the masks that are boolean; or null.
    MaskKinds(const Request& request, Operands& operands, const nlohmann::json* layout)
        : request_(request), operands_(operands), layout_(layout) {}

    /// Stores a mask as an operand; `file` is null for a mask in the request.
    void take(const OperandRow& rule, io::NumberArray read, const io::InputFile* file = nullptr);

    /// Call this after all masks are taken. Errors: kind usage for a mask of 0 and 1 that neither
    /// mask_kind nor mask_true, where no other mask is boolean, takes for one or the other.
    void resolve();

private:
    struct Taken {
        const OperandRow* rule;
        std::string file;  // empty for a mask in the request
        bool is_0_or_1;
    };
    std::string location_of_mask(const Taken& mask) const;

    const Request& request_;
    Operands& operands_;
    const nlohmann::json* layout_;
    std::vector<Taken> taken_;  // masks of numbers
};

/// The operands, and what reading them determines.
struct ReadOperands {
    Operands operands;
    /// Labels that replace the request's.
    std::optional<std::vector<std::string>> tokens = {}, context_tokens = {};
    std::map<std::string, std::string> files = {};  ///< names of the operands' own files, by key
    std::vector<std::string> notes = {};
    std::uint64_t left_out = 0;     ///< words of a text
    bool may_be_nonfinite = false;  ///< NaN and infinities of inputs and context were not refused
    /// Bytes of the largest text plus the largest elements before rounding, of any operand's file.
    double text_bytes_while_reading = 0;
};

/// The sources of operands that have no file of their own.
struct OperandSources {
    const Input* input = nullptr;        ///< null if it is not read
    const LayerSource* model = nullptr;  ///< null without weights
    /// If not null, some rows stay in their files: those operands have their shapes, but no
    /// elements.
    OperandRows* rows = nullptr;
    double text_bytes = 0;  ///< bytes of the text of INPUT that is in memory meanwhile
};

/// Reads every array of the request's question. Errors: kinds usage, input, shape and io.
ReadOperands read_operands(const Request& request, const OperandSources& sources,
                           ThreadPool& workers);

/// The order in which the axes of an operand of `rank` axes are computed with, from that in which
/// they are given; empty: they are the same. `of_tokens` is the rank of the inputs or the query.
std::vector<std::size_t> computed_order(const Request& request, OperandId operand, std::size_t rank,
                                        std::size_t of_tokens);
/// Gives an operand, of operands with the inputs or the query, this order.
void to_computed_order(const Request& request, Operands& operands, OperandId operand);

/// Splits an array on its third axis from the end, which has one entry per part. Errors: kind
/// shape.
void split_packed(const RealArray& all, const std::string& location,
                  std::span<const OperandId> parts, Operands& operands);

/// The factors of quantised keys and values: of those of a cache, or of all where there is none.
class OperandScales {
public:
    OperandScales(const Request& request, bool has_past) : request_(request), has_past_(has_past) {}

    bool has(const OperandRow& row) const { return scale_of(row) != nullptr; }
    /// The elements of the file that is read next: integers and float8 are quantised already.
    void note_type(std::optional<NumberType> type) {
        are_codes_ = type && (!is_float(*type) || row_of(*type).size == 1);
    }
    /// Multiplies an operand that was read, with its axes in the order in which they are given,
    /// unless that `is_done`, or quantises it to the type of quantised keys and values. Errors:
    /// kind shape; kind input beyond the type's range.
    void apply(Operands& operands, const OperandRow& row, bool is_done);
    /// The keys and values of an example in that type, if there is one.
    void hold_example(Operands& operands);
    /// Errors: kind usage if a setting has no such operand.
    void require_used() const;

private:
    const std::shared_ptr<const Array<double>>* scale_of(const OperandRow& row) const;

    const Request& request_;
    bool has_past_;
    bool is_used_[2] = {};  // of keys and of values
    bool are_codes_ = false;
};

/// The path of the operand's own file. Relative paths in a request start at the request's folder;
/// those in a result are of the command that wrote it.
/// Errors: kind usage for standard input, in a batch or if INPUT is piped too.
std::string path_of(const Request& request, const Input* input, const std::string& key);

/// Whether the request's document, rather than a flag, names a file of the model.
bool is_model_of_document(const Request& request);

/// Rethrows an error in a file without the file's contents; call it from the handler of the error.
/// Kind input keeps the file, line and column, and what was expected unless that contains a
/// quotation. What was found is kept only if it consists of plain words and counts. Kinds shape and
/// io lose only the member, key or value in their location. Other errors are rethrown unchanged.
[[noreturn]] void throw_redacted(const Error& error);

/// Runs `read`, which opens a file named by the request's document (`by_document`) or by a flag. A
/// batch record may name a file that belongs to someone else, so errors do not show its contents.
template <class Read>
void read_named(const Request& request, bool by_document, const Read& read) {
    try {
        read();
    } catch (const SettingError&) {
        throw;
    } catch (const Error& error) {
        if (request.of_batch && by_document) throw_redacted(error);
        throw;
    }
}

struct TextInput {
    RealArray inputs;  ///< of a text, and of random numbers: their shape, without elements
    std::vector<std::int64_t> token_ids;  ///< of an embedded text; else empty
    std::vector<std::string> tokens;      ///< labels
    std::uint64_t left_out = 0;           ///< words
};

/// The request with the text of its example, all defaults of the text's embedding, and the type of
/// NumPy's numbers with its generator. Errors: kind usage for an unknown example.
Request with_text(Request request);

/// The words of the request's text. Without a text, the matrix of its example. Errors: kinds usage
/// and input, at the setting's location.
TextInput read_text(const Request& request);

/// Gives the inputs, or query, key and value, the shapes of --rand or --randn. Errors: kind usage
/// for a shape of another rank; kind input if they need too much memory.
void set_shapes_of_draws(const Request& request, Operands& operands);

/// Whether the inputs, or query, key and value, are drawn, once the memory of the whole question is
/// known.
bool draws_inputs(const Request& request);

/// Draws them by --rand or --randn; or embeds the words of the text, as PyTorch's nn.Embedding:
/// (words, embed_dim).
void draw_inputs(const Request& request, Operands& operands);

/// A label without its surrounding blanks, with which tokenizers mark the start of words. A label
/// of blanks only is quoted. Cut to at most `columns` columns.
std::string shown_label(const std::string& label, std::size_t columns);

/// Checks that labels of tokens are as many as these, and finds what they name. Errors: kind input.
void check_tokens(const Request& request, ReadOperands& read);

/// The index of the query with the request's token_label: exactly this label, or else the same
/// without surrounding blanks. Errors: kind usage if none or more than one matches.
std::size_t token_labelled(const Request& request, std::size_t queries);

}  // namespace attn::cli
