// A result as a question: the settings and operands that it was computed from.
#pragma once

#include <memory>
#include <string>

#include "cli/question/layer_source.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request_builder.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {

/// Errors: kind input for a result of attn model, which is not the question of a layer.
void refuse_model_result(const io::ResultHead& head, const std::string& location);

/// `flags` with the mode, settings and labels of a result's head; settings of `flags` take
/// precedence, but in a batch. `location` is the file in errors. Errors: kind input for a head that
/// is not a result's.
Request request_of_result(const io::ResultHead& head, const std::string& location,
                          Request flags = {});

/// Uses a result of attn as the request: its settings and the operands that its layout lists.
/// Errors: kind input for an array that it lacks or holds rounded.
void take_question(RequestBuilder& builder, Input& input);

/// The parameters in a result. Those of norms are not in it, so such a layer has none here.
class SavedLayer final : public LayerSource {
public:
    explicit SavedLayer(const Input& input) : input_(input) {}

    Request with_model(Request asked) override { return asked; }
    AnyLayerWeights read_weights(const Request& request) const override;
    Array<double> embed_token_ids(const Request& request, std::size_t past_len) const override;
    Labels token_labels(const Request& request) const override;
    std::optional<InputNorm> read_norm(const Request&) const override { return {}; }
    std::vector<std::string> notes_on_input(const Request&) const override { return {}; }

private:
    const Input& input_;
};

}  // namespace attn::cli
