/* Functions that the libc.so.6 of glibc 2.17 does not have, in terms of what it has: those of glibc
 * 2.30 to 2.35, and those that each program gets from glibc's static part. They are linked into the
 * agents, see mod.rs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Names of their own: the headers declare the functions, or do not, and as other types. */
#define AS(name) __asm__(#name) __attribute__((visibility("hidden")))

int own_atexit(void (*function)(void)) AS(atexit);
int own_tid(void) AS(gettid);
int own_stat(const char *path, void *stat) AS(stat);
int own_stat64(const char *path, void *stat) AS(stat64);
int own_lstat(const char *path, void *stat) AS(lstat);
int own_lstat64(const char *path, void *stat) AS(lstat64);
int own_fstat(int fd, void *stat) AS(fstat);
int own_fstat64(int fd, void *stat) AS(fstat64);
int own_fstatat(int fd, const char *path, void *stat, int flags) AS(fstatat);
int own_fstatat64(int fd, const char *path, void *stat, int flags) AS(fstatat64);

int __cxa_atexit(void (*function)(void *), void *argument, void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

int own_atexit(void (*function)(void)) {
    return __cxa_atexit((void (*)(void *))function, NULL, __dso_handle);
}

int own_tid(void) {
    return syscall(SYS_gettid);
}

/* On x86-64 and arm64 the kernel's `struct stat` is that of glibc and musl. */
int own_fstatat(int fd, const char *path, void *stat, int flags) {
    return syscall(SYS_newfstatat, fd, path, stat, flags);
}

int own_fstatat64(int fd, const char *path, void *stat, int flags) {
    return own_fstatat(fd, path, stat, flags);
}

int own_stat(const char *path, void *stat) {
    return own_fstatat(AT_FDCWD, path, stat, 0);
}

int own_stat64(const char *path, void *stat) {
    return own_fstatat(AT_FDCWD, path, stat, 0);
}

int own_lstat(const char *path, void *stat) {
    return own_fstatat(AT_FDCWD, path, stat, AT_SYMLINK_NOFOLLOW);
}

int own_lstat64(const char *path, void *stat) {
    return own_fstatat(AT_FDCWD, path, stat, AT_SYMLINK_NOFOLLOW);
}

int own_fstat(int fd, void *stat) {
    return syscall(SYS_fstat, fd, stat);
}

int own_fstat64(int fd, void *stat) {
    return own_fstat(fd, stat);
}

/* Like `struct dl_find_object` of <dlfcn.h> in glibc 2.35, by which libgcc finds unwind tables. */
struct object {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    void *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};

struct search {
    ElfW(Addr) pc;
    struct object *object;
};

int own_find_object(void *pc, struct object *object) AS(_dl_find_object);

/* Stops with 1 at the file that has the pc, whether it has tables or not. */
static int is_in(struct dl_phdr_info *file, size_t size, void *data) {
    struct search *search = data;
    int is_found = 0;
    void *tables = NULL;
    (void)size;
    for (int i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        ElfW(Addr) start = file->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_EH_FRAME) {
            tables = (void *)start;
        } else if (part->p_type == PT_LOAD && search->pc - start < part->p_memsz) {
            is_found = 1;
            search->object->map_start = (void *)start;
            search->object->map_end = (void *)(start + part->p_memsz);
        }
    }
    search->object->eh_frame = is_found ? tables : NULL;
    return is_found;
}

int own_find_object(void *pc, struct object *object) {
    struct search search = {(ElfW(Addr))pc, object};
    *object = (struct object){0};
    return dl_iterate_phdr(is_in, &search) && object->eh_frame ? 0 : -1;
}
