// <nv/target>: code by the processor it is for, with the same tokens left as NVIDIA's header leaves for a GPU.
#pragma once
#include "cuda_runtime.h"

#define NV_IS_DEVICE 1
#define NV_IS_HOST 0
#define NV_ANY_TARGET 1
#define NV_NO_TARGET 0
#define NV_PROVIDES_SM_50 HG_PROVIDES_50
#define NV_IS_EXACTLY_SM_50 HG_EXACTLY_50
#define NV_PROVIDES_SM_52 HG_PROVIDES_52
#define NV_IS_EXACTLY_SM_52 HG_EXACTLY_52
#define NV_PROVIDES_SM_53 HG_PROVIDES_53
#define NV_IS_EXACTLY_SM_53 HG_EXACTLY_53
#define NV_PROVIDES_SM_60 HG_PROVIDES_60
#define NV_IS_EXACTLY_SM_60 HG_EXACTLY_60
#define NV_PROVIDES_SM_61 HG_PROVIDES_61
#define NV_IS_EXACTLY_SM_61 HG_EXACTLY_61
#define NV_PROVIDES_SM_62 HG_PROVIDES_62
#define NV_IS_EXACTLY_SM_62 HG_EXACTLY_62
#define NV_PROVIDES_SM_70 HG_PROVIDES_70
#define NV_IS_EXACTLY_SM_70 HG_EXACTLY_70
#define NV_PROVIDES_SM_72 HG_PROVIDES_72
#define NV_IS_EXACTLY_SM_72 HG_EXACTLY_72
#define NV_PROVIDES_SM_75 HG_PROVIDES_75
#define NV_IS_EXACTLY_SM_75 HG_EXACTLY_75
#define NV_PROVIDES_SM_80 HG_PROVIDES_80
#define NV_IS_EXACTLY_SM_80 HG_EXACTLY_80
#define NV_PROVIDES_SM_86 HG_PROVIDES_86
#define NV_IS_EXACTLY_SM_86 HG_EXACTLY_86
#define NV_PROVIDES_SM_87 HG_PROVIDES_87
#define NV_IS_EXACTLY_SM_87 HG_EXACTLY_87
#define NV_PROVIDES_SM_89 HG_PROVIDES_89
#define NV_IS_EXACTLY_SM_89 HG_EXACTLY_89
#define NV_PROVIDES_SM_90 HG_PROVIDES_90
#define NV_IS_EXACTLY_SM_90 HG_EXACTLY_90
#define NV_PROVIDES_SM_100 HG_PROVIDES_100
#define NV_IS_EXACTLY_SM_100 HG_EXACTLY_100
#define NV_PROVIDES_SM_103 HG_PROVIDES_103
#define NV_IS_EXACTLY_SM_103 HG_EXACTLY_103
#define NV_PROVIDES_SM_110 HG_PROVIDES_110
#define NV_IS_EXACTLY_SM_110 HG_EXACTLY_110
#define NV_PROVIDES_SM_120 HG_PROVIDES_120
#define NV_IS_EXACTLY_SM_120 HG_EXACTLY_120
// Compared here, because what a macro stands for has to be 0 or 1.
#if __CUDA_ARCH__ >= 500
#define HG_PROVIDES_50 1
#else
#define HG_PROVIDES_50 0
#endif
#if __CUDA_ARCH__ == 500
#define HG_EXACTLY_50 1
#else
#define HG_EXACTLY_50 0
#endif
#if __CUDA_ARCH__ >= 520
#define HG_PROVIDES_52 1
#else
#define HG_PROVIDES_52 0
#endif
#if __CUDA_ARCH__ == 520
#define HG_EXACTLY_52 1
#else
#define HG_EXACTLY_52 0
#endif
#if __CUDA_ARCH__ >= 530
#define HG_PROVIDES_53 1
#else
#define HG_PROVIDES_53 0
#endif
#if __CUDA_ARCH__ == 530
#define HG_EXACTLY_53 1
#else
#define HG_EXACTLY_53 0
#endif
#if __CUDA_ARCH__ >= 600
#define HG_PROVIDES_60 1
#else
#define HG_PROVIDES_60 0
#endif
#if __CUDA_ARCH__ == 600
#define HG_EXACTLY_60 1
#else
#define HG_EXACTLY_60 0
#endif
#if __CUDA_ARCH__ >= 610
#define HG_PROVIDES_61 1
#else
#define HG_PROVIDES_61 0
#endif
#if __CUDA_ARCH__ == 610
#define HG_EXACTLY_61 1
#else
#define HG_EXACTLY_61 0
#endif
#if __CUDA_ARCH__ >= 620
#define HG_PROVIDES_62 1
#else
#define HG_PROVIDES_62 0
#endif
#if __CUDA_ARCH__ == 620
#define HG_EXACTLY_62 1
#else
#define HG_EXACTLY_62 0
#endif
#if __CUDA_ARCH__ >= 700
#define HG_PROVIDES_70 1
#else
#define HG_PROVIDES_70 0
#endif
#if __CUDA_ARCH__ == 700
#define HG_EXACTLY_70 1
#else
#define HG_EXACTLY_70 0
#endif
#if __CUDA_ARCH__ >= 720
#define HG_PROVIDES_72 1
#else
#define HG_PROVIDES_72 0
#endif
#if __CUDA_ARCH__ == 720
#define HG_EXACTLY_72 1
#else
#define HG_EXACTLY_72 0
#endif
#if __CUDA_ARCH__ >= 750
#define HG_PROVIDES_75 1
#else
#define HG_PROVIDES_75 0
#endif
#if __CUDA_ARCH__ == 750
#define HG_EXACTLY_75 1
#else
#define HG_EXACTLY_75 0
#endif
#if __CUDA_ARCH__ >= 800
#define HG_PROVIDES_80 1
#else
#define HG_PROVIDES_80 0
#endif
#if __CUDA_ARCH__ == 800
#define HG_EXACTLY_80 1
#else
#define HG_EXACTLY_80 0
#endif
#if __CUDA_ARCH__ >= 860
#define HG_PROVIDES_86 1
#else
#define HG_PROVIDES_86 0
#endif
#if __CUDA_ARCH__ == 860
#define HG_EXACTLY_86 1
#else
#define HG_EXACTLY_86 0
#endif
#if __CUDA_ARCH__ >= 870
#define HG_PROVIDES_87 1
#else
#define HG_PROVIDES_87 0
#endif
#if __CUDA_ARCH__ == 870
#define HG_EXACTLY_87 1
#else
#define HG_EXACTLY_87 0
#endif
#if __CUDA_ARCH__ >= 890
#define HG_PROVIDES_89 1
#else
#define HG_PROVIDES_89 0
#endif
#if __CUDA_ARCH__ == 890
#define HG_EXACTLY_89 1
#else
#define HG_EXACTLY_89 0
#endif
#if __CUDA_ARCH__ >= 900
#define HG_PROVIDES_90 1
#else
#define HG_PROVIDES_90 0
#endif
#if __CUDA_ARCH__ == 900
#define HG_EXACTLY_90 1
#else
#define HG_EXACTLY_90 0
#endif
#if __CUDA_ARCH__ >= 1000
#define HG_PROVIDES_100 1
#else
#define HG_PROVIDES_100 0
#endif
#if __CUDA_ARCH__ == 1000
#define HG_EXACTLY_100 1
#else
#define HG_EXACTLY_100 0
#endif
#if __CUDA_ARCH__ >= 1030
#define HG_PROVIDES_103 1
#else
#define HG_PROVIDES_103 0
#endif
#if __CUDA_ARCH__ == 1030
#define HG_EXACTLY_103 1
#else
#define HG_EXACTLY_103 0
#endif
#if __CUDA_ARCH__ >= 1100
#define HG_PROVIDES_110 1
#else
#define HG_PROVIDES_110 0
#endif
#if __CUDA_ARCH__ == 1100
#define HG_EXACTLY_110 1
#else
#define HG_EXACTLY_110 0
#endif
#if __CUDA_ARCH__ >= 1200
#define HG_PROVIDES_120 1
#else
#define HG_PROVIDES_120 0
#endif
#if __CUDA_ARCH__ == 1200
#define HG_EXACTLY_120 1
#else
#define HG_EXACTLY_120 0
#endif

#define HG_JOINED(a, b) HG_JOINED_AT_ONCE(a, b)
#define HG_JOINED_AT_ONCE(a, b) a##b
#define HG_WITHOUT_BRACKETS(...) __VA_ARGS__
#define HG_CHOSEN_1(yes, no, ...) {HG_WITHOUT_BRACKETS yes}
#define HG_CHOSEN_0(yes, no, ...) {HG_WITHOUT_BRACKETS no}
#define HG_CHOSEN(condition, ...) HG_JOINED(HG_CHOSEN_, condition)(__VA_ARGS__, (), )
#define NV_IF_TARGET(condition, ...) HG_CHOSEN(condition, __VA_ARGS__)
#define NV_IF_ELSE_TARGET(condition, yes, no) HG_CHOSEN(condition, yes, no)
// The code of the first condition that holds.
#define HG_FIRST_0_1(yes, ...) {HG_WITHOUT_BRACKETS yes}
#define HG_FIRST_0_0(yes, ...) HG_FIRST_1(__VA_ARGS__)
#define HG_FIRST_0(condition, ...) HG_JOINED(HG_FIRST_0_, condition)(__VA_ARGS__)
#define HG_FIRST_1_1(yes, ...) {HG_WITHOUT_BRACKETS yes}
#define HG_FIRST_1_0(yes, ...) HG_FIRST_2(__VA_ARGS__)
#define HG_FIRST_1(condition, ...) HG_JOINED(HG_FIRST_1_, condition)(__VA_ARGS__)
#define HG_FIRST_2_1(yes, ...) {HG_WITHOUT_BRACKETS yes}
#define HG_FIRST_2_0(yes, ...) HG_FIRST_3(__VA_ARGS__)
#define HG_FIRST_2(condition, ...) HG_JOINED(HG_FIRST_2_, condition)(__VA_ARGS__)
#define HG_FIRST_3_1(yes, ...) {HG_WITHOUT_BRACKETS yes}
#define HG_FIRST_3_0(yes, ...) HG_FIRST_4(__VA_ARGS__)
#define HG_FIRST_3(condition, ...) HG_JOINED(HG_FIRST_3_, condition)(__VA_ARGS__)
#define HG_FIRST_4_1(yes, ...) {HG_WITHOUT_BRACKETS yes}
#define HG_FIRST_4_0(yes, ...) HG_FIRST_5(__VA_ARGS__)
#define HG_FIRST_4(condition, ...) HG_JOINED(HG_FIRST_4_, condition)(__VA_ARGS__)
#define HG_FIRST_5_1(yes, ...) {HG_WITHOUT_BRACKETS yes}
#define HG_FIRST_5_0(yes, ...) {}
#define HG_FIRST_5(condition, ...) HG_JOINED(HG_FIRST_5_, condition)(__VA_ARGS__)
#define NV_DISPATCH_TARGET(...) HG_FIRST_0(__VA_ARGS__, NV_ANY_TARGET, (), )
