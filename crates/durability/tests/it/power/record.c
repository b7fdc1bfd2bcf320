/*
 * A library for LD_PRELOAD that records what a process writes to the files of one folder, when it has them synced, and
 * what it says to others, in the order in which that happened.
 *
 * RECORD_FOLDER: the folder, absolute, without a slash at its end. Files that end in "-shm" are left out: they are memory
 * that is shared, and are made anew after a power loss.
 * RECORD_LOG: the file that the records are appended to.
 * RECORD_FORGETS_SYNCS: if set, a sync is answered and not done, as by a disk that lies.
 * RECORD_SYNCS_FAIL: a number n. From the moment on at which the process first says something to others, every n-th sync is
 * not done and fails with EIO.
 * RECORD_FAILS: two numbers. The first counts what is done to the files from the moment on at which the process first
 * says something to others: each read, write, change of length and sync. The one with this number is not done and fails
 * with the second number as its error.
 *
 * A record: one byte for its kind, one for the length of the name, two of nothing, four for the length of the data, eight
 * for the offset, all in the byte order of the machine; then the name, then the data. Kinds: c(reate), w(rite),
 * t(runcate, to the offset), s(ync), u(nlink), r(ename, the data is the new name), d(irectory synced), o (said on the
 * standard output), n (said on the network), f (one of these on a file failed as it was told to).
 *
 * What is done and its record are one step under a lock, so that the order of the records is an order in which it
 * can have happened.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 4096
#define NAME 128

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static size_t folder_length;
static int forgets_syncs;
/* Every sync of this many fails; 0: none. */
static long syncs_fail;
static long syncs;
static int record_fd = -1;
/* How many are left until one fails, and its error. */
static long fails_in;
static int failure;
static int has_spoken;
/* The names of the open files; "/" is the folder itself. */
static char names[FILES][NAME];

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("RECORD_LOG");
    folder = getenv("RECORD_FOLDER");
    if (log == NULL || folder == NULL) return;
    folder_length = strlen(folder);
    forgets_syncs = getenv("RECORD_FORGETS_SYNCS") != NULL;
    const char *every = getenv("RECORD_SYNCS_FAIL");
    if (every != NULL) syncs_fail = strtol(every, NULL, 10);
    const char *fails = getenv("RECORD_FAILS");
    if (fails != NULL && sscanf(fails, "%ld %d", &fails_in, &failure) != 2) abort();
    record_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (record_fd < 0) abort();
}

static void record(char kind, const char *name, uint64_t offset, const void *data, size_t length) {
    struct {
        char kind;
        uint8_t name_length;
        uint16_t nothing;
        uint32_t data_length;
        uint64_t offset;
    } head = {kind, (uint8_t)strlen(name), 0, (uint32_t)length, offset};
    struct iovec parts[3] = {
        {&head, sizeof head}, {(void *)name, head.name_length}, {(void *)data, length}};
    size_t all = sizeof head + head.name_length + length;
    if (record_fd < 0) return;
    /* A record that is cut off would make all after it senseless. */
    if (syscall(SYS_writev, record_fd, parts, 3) != (long)all) abort();
}

/* The name in the folder, "/" for the folder itself, NULL for what is not recorded. */
static const char *inside(const char *path) {
    if (folder == NULL || strncmp(path, folder, folder_length) != 0) return NULL;
    const char *rest = path + folder_length;
    if (*rest == '\0') return "/";
    if (*rest != '/' || strlen(rest + 1) >= NAME) return NULL;
    size_t length = strlen(rest);
    if (length > 4 && strcmp(rest + length - 4, "-shm") == 0) return NULL;
    return rest + 1;
}

static const char *name_of(int fd) {
    return fd >= 0 && fd < FILES && names[fd][0] != '\0' ? names[fd] : NULL;
}

/* Whether this is the one that fails. */
static int fails(const char *name) {
    if (!has_spoken || name == NULL || fails_in == 0 || --fails_in > 0) return 0;
    record('f', name, 0, NULL, 0);
    errno = failure;
    return 1;
}

static int open_at(int at, const char *path, int flags, mode_t mode) {
    const char *name = inside(path);
    pthread_mutex_lock(&lock);
    int is_new = name != NULL && (flags & O_CREAT) && syscall(SYS_faccessat, AT_FDCWD, path, F_OK, 0) != 0;
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && name != NULL) {
        if (fd >= FILES) abort();
        strcpy(names[fd], name);
        if (is_new) record('c', name, 0, NULL, 0);
        if (!is_new && (flags & O_TRUNC)) record('t', name, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE                                     \
    mode_t mode = 0;                             \
    if (flags & (O_CREAT | O_TMPFILE)) {         \
        va_list more;                            \
        va_start(more, flags);                   \
        mode = (mode_t)va_arg(more, unsigned);   \
        va_end(more);                            \
    }

int open(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE return open_at(at, path, flags, mode); }

int close(int fd) {
    pthread_mutex_lock(&lock);
    if (fd >= 0 && fd < FILES) names[fd][0] = '\0';
    int ended = (int)syscall(SYS_close, fd);
    pthread_mutex_unlock(&lock);
    return ended;
}

ssize_t write(int fd, const void *data, size_t length) {
    const char *name = name_of(fd);
    if (name == NULL && fd != STDOUT_FILENO) return syscall(SYS_write, fd, data, length);
    pthread_mutex_lock(&lock);
    off_t at = name == NULL ? 0 : (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
    /* What is said counts from the moment before somebody can hear it. */
    if (name == NULL) {
        has_spoken = 1;
        record('o', "", 0, data, length);
    }
    ssize_t written = fails(name) ? -1 : syscall(SYS_write, fd, data, length);
    if (name != NULL && written > 0) record('w', name, (uint64_t)at, data, (size_t)written);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) {
    const char *name = name_of(fd);
    if (name == NULL) return syscall(SYS_pwrite64, fd, data, length, at);
    pthread_mutex_lock(&lock);
    ssize_t written = fails(name) ? -1 : syscall(SYS_pwrite64, fd, data, length, at);
    if (written > 0) record('w', name, (uint64_t)at, data, (size_t)written);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t at) { return pwrite64(fd, data, length, at); }

ssize_t read(int fd, void *data, size_t length) {
    const char *name = name_of(fd);
    if (name == NULL) return syscall(SYS_read, fd, data, length);
    pthread_mutex_lock(&lock);
    ssize_t found = fails(name) ? -1 : syscall(SYS_read, fd, data, length);
    pthread_mutex_unlock(&lock);
    return found;
}

ssize_t pread64(int fd, void *data, size_t length, off64_t at) {
    const char *name = name_of(fd);
    if (name == NULL) return syscall(SYS_pread64, fd, data, length, at);
    pthread_mutex_lock(&lock);
    ssize_t found = fails(name) ? -1 : syscall(SYS_pread64, fd, data, length, at);
    pthread_mutex_unlock(&lock);
    return found;
}

ssize_t pread(int fd, void *data, size_t length, off_t at) { return pread64(fd, data, length, at); }

ssize_t send(int fd, const void *data, size_t length, int flags) {
    pthread_mutex_lock(&lock);
    has_spoken = 1;
    record('n', "", 0, data, length);
    pthread_mutex_unlock(&lock);
    return syscall(SYS_sendto, fd, data, length, flags, NULL, 0);
}

int ftruncate64(int fd, off64_t size) {
    const char *name = name_of(fd);
    pthread_mutex_lock(&lock);
    int ended = fails(name) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
    if (ended == 0 && name != NULL) record('t', name, (uint64_t)size, NULL, 0);
    pthread_mutex_unlock(&lock);
    return ended;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int sync_with(long call, int fd) {
    const char *name = name_of(fd);
    if (name == NULL) return (int)syscall(call, fd);
    if (forgets_syncs) return 0;
    pthread_mutex_lock(&lock);
    int ended;
    if (has_spoken && syncs_fail != 0 && ++syncs % syncs_fail == 0) {
        errno = EIO;
        ended = -1;
    } else {
        ended = fails(name) ? -1 : (int)syscall(call, fd);
    }
    if (ended == 0) record(strcmp(name, "/") == 0 ? 'd' : 's', name, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return ended;
}

int fsync(int fd) { return sync_with(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_with(SYS_fdatasync, fd); }

int unlink(const char *path) {
    const char *name = inside(path);
    pthread_mutex_lock(&lock);
    int ended = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (ended == 0 && name != NULL) record('u', name, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return ended;
}

int rename(const char *from, const char *to) {
    const char *name = inside(from), *other = inside(to);
    pthread_mutex_lock(&lock);
    int ended = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (ended == 0 && name != NULL && other != NULL) record('r', name, 0, other, strlen(other));
    pthread_mutex_unlock(&lock);
    return ended;
}
