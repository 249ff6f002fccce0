// <nv/target>: which code is for the GPU. Here all of heat.cu's kernel is, and the architecture is that of __CUDA_ARCH__.
#pragma once
#include "cuda_runtime.h"

#define NV_ANY_TARGET 1
#define NV_NO_TARGET 0
#define NV_IS_DEVICE 1
#define NV_IS_HOST 0
#define NV_PROVIDES_SM_35 1
#define NV_PROVIDES_SM_37 1
#define NV_PROVIDES_SM_50 1
#define NV_PROVIDES_SM_52 1
#define NV_PROVIDES_SM_53 1
#define NV_PROVIDES_SM_60 1
#define NV_PROVIDES_SM_61 1
#define NV_PROVIDES_SM_62 1
#define NV_PROVIDES_SM_70 1
#define NV_PROVIDES_SM_72 1
#define NV_PROVIDES_SM_75 1
#define NV_PROVIDES_SM_80 0
#define NV_PROVIDES_SM_86 0
#define NV_PROVIDES_SM_87 0
#define NV_PROVIDES_SM_88 0
#define NV_PROVIDES_SM_89 0
#define NV_PROVIDES_SM_90 0
#define NV_PROVIDES_SM_100 0
#define NV_PROVIDES_SM_101 0
#define NV_PROVIDES_SM_103 0
#define NV_PROVIDES_SM_110 0
#define NV_PROVIDES_SM_120 0
#define NV_PROVIDES_SM_121 0
#define NV_IS_EXACTLY_SM_35 0
#define NV_IS_EXACTLY_SM_37 0
#define NV_IS_EXACTLY_SM_50 0
#define NV_IS_EXACTLY_SM_52 0
#define NV_IS_EXACTLY_SM_53 0
#define NV_IS_EXACTLY_SM_60 0
#define NV_IS_EXACTLY_SM_61 0
#define NV_IS_EXACTLY_SM_62 0
#define NV_IS_EXACTLY_SM_70 0
#define NV_IS_EXACTLY_SM_72 0
#define NV_IS_EXACTLY_SM_75 1
#define NV_IS_EXACTLY_SM_80 0
#define NV_IS_EXACTLY_SM_86 0
#define NV_IS_EXACTLY_SM_87 0
#define NV_IS_EXACTLY_SM_88 0
#define NV_IS_EXACTLY_SM_89 0
#define NV_IS_EXACTLY_SM_90 0
#define NV_IS_EXACTLY_SM_100 0
#define NV_IS_EXACTLY_SM_101 0
#define NV_IS_EXACTLY_SM_103 0
#define NV_IS_EXACTLY_SM_110 0
#define NV_IS_EXACTLY_SM_120 0
#define NV_IS_EXACTLY_SM_121 0

#define HG_NV_TEXT(...) __VA_ARGS__
#define HG_NV_PICK_1(then, otherwise) HG_NV_TEXT then
#define HG_NV_PICK_0(then, otherwise) HG_NV_TEXT otherwise
#define HG_NV_PICK(condition, then, otherwise) HG_NV_PICK_##condition(then, otherwise)
#define HG_NV_IF(condition, then, otherwise, ...) HG_NV_PICK(condition, then, otherwise)
// In braces, as nvcc has them.
#define NV_IF_TARGET(condition, ...) {HG_NV_IF(condition, __VA_ARGS__, (), )}
#define NV_IF_ELSE_TARGET(condition, then, otherwise) {HG_NV_IF(condition, then, otherwise, )}

// The first of up to four conditions that holds.
#define HG_NV_FIRST_1(code, ...) HG_NV_TEXT code
#define HG_NV_FIRST_0(code, ...) __VA_ARGS__
#define HG_NV_FIRST(condition, code, ...) HG_NV_FIRST_##condition(code, __VA_ARGS__)
#define HG_NV_LEFT(condition, code, ...) HG_NV_FIRST(condition, code, __VA_ARGS__)
#define HG_NV_DISPATCH(a, A, b, B, c, C, d, D, ...)                                                                     \
    HG_NV_LEFT(a, A, HG_NV_PICK(b, B, (HG_NV_PICK(c, C, (HG_NV_PICK(d, D, ()))))))
#define NV_DISPATCH_TARGET(...)                                                                                         \
    {HG_NV_DISPATCH(__VA_ARGS__, NV_NO_TARGET, (), NV_NO_TARGET, (), NV_NO_TARGET, (), NV_NO_TARGET, (), )}
