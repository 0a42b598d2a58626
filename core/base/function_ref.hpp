// A function to call and not to keep: std::function without its memory, and without its header.
#pragma once

#include <utility>

namespace attn {

template <class Signature>
class FunctionRef;

/// What it is made from must live as long; an object, not a bare function.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
public:
    template <class Function>
    FunctionRef(const Function& function)  // NOLINT(google-explicit-constructor): as std::function
        : object_(&function), call_([](const void* object, Arguments... arguments) -> Result {
              return (*static_cast<const Function*>(object))(std::forward<Arguments>(arguments)...);
          }) {}

    Result operator()(Arguments... arguments) const {
        return call_(object_, std::forward<Arguments>(arguments)...);
    }

private:
    const void* object_;
    Result (*call_)(const void*, Arguments...);
};

}  // namespace attn
