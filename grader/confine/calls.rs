//! System calls by what they are good for. x86-64, like engine cpu.

use libc::c_long;

/// Sockets, other processes' memory, the kernel's own doors: nobody here needs them.
pub const NEVER: [c_long; 53] = [
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_personality,
];

/// What a worker must not do besides: other processes, other users of the machine, any change to a file.
pub const NOT_A_WORKER: [c_long; 53] = [
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_creat,
    libc::SYS_truncate,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_chown,
    libc::SYS_fchown,
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_memfd_create,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    libc::SYS_setpriority,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
    libc::SYS_inotify_init1,
    libc::SYS_timer_create,
];

/// All that a worker needs once the object is loaded. Pipes are among them so that what starts a process comes to the
/// call that starts it, which has a name.
pub const WHILE_RUNNING: [c_long; 47] = [
    libc::SYS_pipe,
    libc::SYS_pipe2,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_mincore,
    libc::SYS_membarrier,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_getcpu,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_times,
    libc::SYS_getrusage,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_clone,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
];

/// Namespaces that `clone` could make.
pub const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Calls whose flags lie in memory, where a filter cannot look.
pub const NEWER: [c_long; 2] = [libc::SYS_clone3, libc::SYS_openat2];

/// What a trapped call wanted, as the end of "it tried to".
pub fn attempt(call: c_long) -> String {
    let words = match call {
        libc::SYS_socket | libc::SYS_socketpair | libc::SYS_connect | libc::SYS_bind => "open a socket",
        libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone => "start another process",
        libc::SYS_execve | libc::SYS_execveat => "start another program",
        libc::SYS_kill | libc::SYS_tkill | libc::SYS_tgkill => "send a signal",
        libc::SYS_rt_sigqueueinfo | libc::SYS_rt_tgsigqueueinfo | libc::SYS_pidfd_send_signal => "send a signal",
        libc::SYS_ptrace | libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => "look into another process",
        libc::SYS_open | libc::SYS_openat => "open a file",
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_readlink | libc::SYS_readlinkat | libc::SYS_getdents64 => {
            "look at files"
        }
        libc::SYS_creat | libc::SYS_truncate | libc::SYS_mkdir | libc::SYS_mkdirat | libc::SYS_mknod => "make a file",
        libc::SYS_unlink | libc::SYS_unlinkat | libc::SYS_rmdir => "delete a file",
        libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 => "rename a file",
        libc::SYS_mmap | libc::SYS_mprotect => "make new machine code",
        libc::SYS_prlimit64 | libc::SYS_setrlimit => "change its limits",
        call => return format!("make system call {call}"),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_named() {
        assert_eq!(attempt(libc::SYS_socket), "open a socket");
        assert_eq!(attempt(libc::SYS_bpf), format!("make system call {}", libc::SYS_bpf));
    }
}
