#pragma once
#include <string>

#include "models/shape.hpp"

namespace foretoken {

/// A shipped model by name, or one from a path.
ModelShape model_named(const std::string& name);

}  // namespace foretoken
