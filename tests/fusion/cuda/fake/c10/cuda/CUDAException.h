#pragma once
#include "fake_torch_cuda.hpp"
