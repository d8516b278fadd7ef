/* Preloaded: an allocator that fails for the agent. DWELL_TEST_NO_MEMORY=CALL,COUNT: in each
 * thread, allocations that the agent's library makes fail from the CALL-th on, COUNT of them; of
 * many, only those of the agent's own threads. What the C library, Rust's library and the JVM
 * allocate for themselves is theirs to survive: so never on the thread that starts the JVM and the
 * agent's threads, as the handle of a new thread does not come from the agent's allocator. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *before, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

/* More is a lack that lasts: then the JVM's threads are left alone, which cannot give up. */
#define FEW 1

static unsigned long first, count;
static __thread unsigned long calls;
/* A page of code, and whether it is the agent's: most calls come from few. */
static __thread uintptr_t page;
static __thread int is_page_agents;

__attribute__((constructor)) static void read_wish(void)
{
    const char *text = getenv("DWELL_TEST_NO_MEMORY");
    if (text == NULL || sscanf(text, "%lu,%lu", &first, &count) != 2) {
        first = 0;
    }
}

/* Whether the agent's library has the code at `address`; then the loader's list ends there. */
static int has_code(struct dl_phdr_info *info, size_t size, void *address)
{
    (void)size;
    if (info->dlpi_name == NULL || strstr(info->dlpi_name, "libdwell.so") == NULL) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t offset = (uintptr_t)address - info->dlpi_addr - header->p_vaddr;
        if (header->p_type == PT_LOAD && offset < header->p_memsz) {
            return 1;
        }
    }
    return 0;
}

/* Takes the same lock as a caller that reads the loader's list: dladdr takes another one, which
 * dlopen takes first. */
static int is_agents(void *caller)
{
    uintptr_t here = (uintptr_t)caller >> 12;
    if (here != page) {
        page = here;
        is_page_agents = dl_iterate_phdr(has_code, caller) != 0;
    }
    return is_page_agents;
}

static int is_spared(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return strcmp(name, "java") == 0 || (count > FEW && strncmp(name, "dwell-", 6) != 0);
}

static int fails(void *caller)
{
    if (first == 0 || !is_agents(caller) || is_spared()) {
        return 0;
    }
    calls++;
    return calls >= first && calls - first < count;
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(number, size);
}

void *realloc(void *before, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(before, size);
}

int posix_memalign(void **result, size_t align, size_t size)
{
    *result = fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, size);
    return *result == NULL ? ENOMEM : 0;
}
