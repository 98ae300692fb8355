/*
 * What libtorch_npu links against and the stand-in does not do. Each fails with a message that names it; none says
 * that it worked. This file sees no ACL header, because the functions need no true signature to refuse.
 */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
#define FEATURE_NOT_SUPPORTED 207000

int simnpu_fail(int code, const char *format, ...);

#define REFUSE(name) \
    EXPORT int name(void) { return simnpu_fail(FEATURE_NOT_SUPPORTED, #name " is not modelled"); }
#define REFUSE_HANDLE(name) \
    EXPORT void *name(void) { return simnpu_fail(FEATURE_NOT_SUPPORTED, #name " is not modelled"), NULL; }
/* Nothing was ever made for it to release or to report. */
#define NOTHING(name) \
    EXPORT void name(void) {}
#define NOTHING_OK(name) \
    EXPORT int name(void) { return 0; }

/* Device kernels as binaries: a generated kernel runs through the project's own driver. */
REFUSE(aclrtBinaryGetFunction)
REFUSE(aclrtBinaryLoadFromData)
REFUSE(aclrtGetFunctionAddr)
REFUSE(rtDevBinaryRegister)
REFUSE(rtFunctionRegister)
REFUSE(rtGetC2cCtrlAddr)
REFUSE(rtKernelLaunch)
REFUSE(aclrtProcessReport)

/* Virtual and shared memory (expandable segments, memory passed between processes). */
REFUSE(aclrtFreePhysical)
REFUSE(aclrtMallocPhysical)
REFUSE(aclrtMapMem)
REFUSE(aclrtUnmapMem)
REFUSE(aclrtReserveMemAddress)
REFUSE(aclrtReleaseMemAddress)
REFUSE(aclrtMemExportToShareableHandle)
REFUSE(aclrtMemImportFromShareableHandle)
REFUSE(aclrtMemSetPidToShareableHandle)

/* Single-operator execution. */
REFUSE_HANDLE(aclCreateDataBuffer)
REFUSE_HANDLE(aclCreateTensorDesc)
REFUSE_HANDLE(aclopCreateAttr)
NOTHING_OK(aclDestroyDataBuffer)
NOTHING(aclDestroyTensorDesc)
NOTHING(aclopDestroyAttr)
REFUSE(aclGetTensorDescDimV2)
REFUSE(aclGetTensorDescFormat)
REFUSE(aclGetTensorDescNumDims)
REFUSE(aclGetTensorDescType)
REFUSE(aclSetTensorDescName)
REFUSE(aclSetTensorFormat)
REFUSE(aclSetTensorPlaceMent)
REFUSE(aclSetTensorShape)
REFUSE(aclopCompileAndExecute)
REFUSE(aclopSetAttrBool)
REFUSE(aclopSetAttrDataType)
REFUSE(aclopSetAttrFloat)
REFUSE(aclopSetAttrInt)
REFUSE(aclopSetAttrListBool)
REFUSE(aclopSetAttrListFloat)
REFUSE(aclopSetAttrListInt)
REFUSE(aclopSetAttrListListInt)
REFUSE(aclopSetAttrString)
REFUSE(aclmdlInitDump)
REFUSE(aclmdlSetDump)
NOTHING_OK(aclmdlFinalizeDump)

/* Profiler: torch_npu registers and reports at start whether anyone profiles or not; nobody does. */
NOTHING_OK(MsprofRegisterCallback)
NOTHING_OK(MsprofReportAdditionalInfo)
NOTHING_OK(MsprofReportApi)
NOTHING_OK(MsprofReportCompactInfo)
EXPORT unsigned long long MsprofGetHashId(void) { return 0; }
EXPORT unsigned long long MsprofSysCycleTime(void) { return 0; }
