// A non-owning reference to a callable: std::function without its allocation, and without its
// header.
#pragma once

#include <utility>

namespace attn {

template <class Signature>
class FunctionRef;

/// The callable must outlive it, and be an object, not a bare function.
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
