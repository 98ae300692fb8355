/*
 * Names a fault. When a kernel touches a page it may not touch, one line goes to stderr and one JSON line to the
 * descriptor in SIMNPU_FAULT_FD: signal, address, kernel, nearest device allocation and the distance to it. Then the
 * handler that was there before (faulthandler's, or the default) gets the same fault, and the process dies of it.
 */
#define _GNU_SOURCE
#include "simnpu.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALTERNATE_STACK ((size_t)64 << 10)

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
#define SIGNAL_COUNT (sizeof SIGNALS / sizeof *SIGNALS)

static struct sigaction previous[SIGNAL_COUNT];
static char kernel_name[256]; /* the kernel that runs */
static char last_kernel[256]; /* the one that ran last, for damage found afterwards */
static int kernel_ran;
static int fault_fd = -1;

/* A line built without the C library's formatting, which is not safe in a signal handler. */
struct line {
    char text[1024];
    size_t length;
};

static void put(struct line *line, const char *text) {
    while (*text != 0 && line->length < sizeof line->text - 1) line->text[line->length++] = *text++;
}

static void put_number(struct line *line, unsigned long value, unsigned base) {
    char digits[24];
    size_t count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (count > 0 && line->length < sizeof line->text - 1) line->text[line->length++] = digits[--count];
}

static void put_signed(struct line *line, long value) {
    if (value < 0) put(line, "-");
    put_number(line, value < 0 ? 0ul - (unsigned long)value : (unsigned long)value, 10);
}

static void send(const struct line *line, int fd) {
    for (size_t sent = 0; sent < line->length;) {
        ssize_t count = write(fd, line->text + sent, line->length - sent);
        if (count <= 0) return; /* nobody reads: the signal still tells that the process died */
        sent += (size_t)count;
    }
}

static const char *signal_name(int number) {
    switch (number) {
        case SIGSEGV: return "SIGSEGV";
        case SIGBUS: return "SIGBUS";
        case SIGFPE: return "SIGFPE";
        default: return "SIGILL";
    }
}

static void put_block(struct line *record, struct line *text, const struct simnpu_block *block, long distance) {
    put(record, ", \"allocation\": \"0x");
    put_number(record, (uintptr_t)block->start, 16);
    put(record, "\", \"size\": ");
    put_number(record, block->size, 10);
    put(record, ", \"distance\": ");
    put_signed(record, distance);
    put(record, block->state == SIMNPU_FREED ? ", \"state\": \"freed\"}\n" : ", \"state\": \"live\"}\n");
    if (distance > 0) {
        put_number(text, (unsigned long)distance, 10);
        put(text, " byte(s) past the end of ");
    } else if (distance < 0) {
        put_number(text, 0ul - (unsigned long)distance, 10);
        put(text, " byte(s) before the start of ");
    } else {
        put(text, "inside ");
    }
    put(text, block->state == SIMNPU_FREED ? "the freed device allocation 0x" : "the device allocation 0x");
    put_number(text, (uintptr_t)block->start, 16);
    put(text, " of ");
    put_number(text, block->size, 10);
    put(text, " bytes");
}

static void put_kernel(struct line *record, struct line *text, const char *where, const char *name) {
    put(record, "\", \"kernel\": \"");
    put(record, name);
    put(record, "\"");
    put(text, where);
    put(text, name[0] ? name : "(none)");
}

static void emit(struct line *record, struct line *text) {
    put(text, "\n");
    send(text, STDERR_FILENO);
    if (fault_fd >= 0) send(record, fault_fd);
}

void simnpu_report_damage(const struct simnpu_block *block, long distance) {
    struct line record = {.length = 0}, text = {.length = 0};
    put(&record, "{\"event\": \"overwrite\", \"signal\": \"\", \"address\": \"0x");
    put_number(&record, (uintptr_t)block->start + (distance > 0 ? block->size - 1 : 0) + (uintptr_t)distance, 16);
    put(&text, "simnpu: overwrite found");
    put_kernel(&record, &text, " after kernel ", kernel_name[0] ? kernel_name : last_kernel);
    put(&text, ": ");
    put_block(&record, &text, block, distance);
    emit(&record, &text);
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    size_t index = 0;
    while (SIGNALS[index] != number) index++;
    struct line record = {.length = 0}, text = {.length = 0};
    put(&text, "simnpu: ");
    put(&text, signal_name(number));
    put(&record, "{\"event\": \"fault\", \"signal\": \"");
    put(&record, signal_name(number));
    if (info->si_code > 0 && (number == SIGSEGV || number == SIGBUS)) {
        uintptr_t address = (uintptr_t)info->si_addr;
        put(&text, " at 0x");
        put_number(&text, address, 16);
        put(&record, "\", \"address\": \"0x");
        put_number(&record, address, 16);
        put_kernel(&record, &text, " in kernel ", kernel_name);
        const struct simnpu_block *block = simnpu_nearest(address);
        if (block != NULL) {
            uintptr_t start = (uintptr_t)block->start, end = start + block->size;
            put(&text, ": ");
            put_block(&record, &text, block,
                      address < start ? -(long)(start - address) : address < end ? 0 : (long)(address - end) + 1);
        } else {
            put(&text, ": no device allocation is live");
            put(&record, "}\n");
        }
    } else {
        put(&record, "\", \"address\": \"");
        put_kernel(&record, &text, " in kernel ", kernel_name);
        put(&record, "}\n");
    }
    emit(&record, &text);
    sigaction(number, &previous[index], NULL);
    if (info->si_code <= 0) raise(number); /* sent by kill or raise: returning would not bring it again */
}

/* Puts the handlers in front of whatever is installed now. Called again before every kernel, it costs four system calls
 * only where somebody else (faulthandler) came in front in the meantime. */
EXPORT void simnpu_watch_faults(void) {
    for (size_t index = 0; index < SIGNAL_COUNT; index++) {
        struct sigaction current;
        sigaction(SIGNALS[index], NULL, &current);
        if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == on_fault) continue;
        previous[index] = current;
        struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
        sigemptyset(&ours.sa_mask);
        sigaction(SIGNALS[index], &ours, NULL);
    }
    stack_t stack;
    if (sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_DISABLE)) {
        void *memory = mmap(NULL, ALTERNATE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return;
        stack = (stack_t){.ss_sp = memory, .ss_size = ALTERNATE_STACK};
        sigaltstack(&stack, NULL);
    }
}

/* Names the kernel that runs from now on; NULL or "" when none does. */
EXPORT void simnpu_set_kernel(const char *name) {
    size_t length = 0;
    if (name != NULL)
        for (; name[length] != 0 && length < sizeof kernel_name - 1; length++)
            kernel_name[length] = name[length] == '"' || name[length] == '\\' || name[length] < ' ' ? '?' : name[length];
    kernel_name[length] = 0;
    if (length == 0) return;
    memcpy(last_kernel, kernel_name, length + 1);
    kernel_ran = 1;
    simnpu_watch_faults();
}

int simnpu_kernel_ran(void) { return __atomic_exchange_n(&kernel_ran, 0, __ATOMIC_RELAXED); }

/* Where records go: a descriptor, or -1 for none. Set from SIMNPU_FAULT_FD when the library is loaded. */
EXPORT void simnpu_set_fault_fd(int fd) { fault_fd = fd; }

__attribute__((constructor)) static void read_fault_fd(void) {
    const char *text = getenv("SIMNPU_FAULT_FD");
    if (text != NULL && *text != 0) fault_fd = atoi(text);
}
