package io.dwell.api;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Passes tasks on with the scope that is open where they are submitted. */
final class WrappedExecutor implements ExecutorService {
    private final ExecutorService inner;

    WrappedExecutor(ExecutorService inner) {
        this.inner = inner;
    }

    private static <T> List<Callable<T>> wrapped(Collection<? extends Callable<T>> tasks) {
        List<Callable<T>> all = new ArrayList<>(tasks.size());
        for (Callable<T> task : tasks) {
            all.add(Dwell.wrap(task));
        }
        return all;
    }

    @Override
    public void execute(Runnable task) {
        inner.execute(Dwell.wrap(task));
    }

    @Override
    public <T> Future<T> submit(Callable<T> task) {
        return inner.submit(Dwell.wrap(task));
    }

    @Override
    public <T> Future<T> submit(Runnable task, T result) {
        return inner.submit(Dwell.wrap(task), result);
    }

    @Override
    public Future<?> submit(Runnable task) {
        return inner.submit(Dwell.wrap(task));
    }

    @Override
    public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks)
            throws InterruptedException {
        return inner.invokeAll(wrapped(tasks));
    }

    @Override
    public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks, long timeout,
            TimeUnit unit) throws InterruptedException {
        return inner.invokeAll(wrapped(tasks), timeout, unit);
    }

    @Override
    public <T> T invokeAny(Collection<? extends Callable<T>> tasks)
            throws InterruptedException, ExecutionException {
        return inner.invokeAny(wrapped(tasks));
    }

    @Override
    public <T> T invokeAny(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
            throws InterruptedException, ExecutionException, TimeoutException {
        return inner.invokeAny(wrapped(tasks), timeout, unit);
    }

    @Override
    public void shutdown() {
        inner.shutdown();
    }

    @Override
    public List<Runnable> shutdownNow() {
        return inner.shutdownNow();
    }

    @Override
    public boolean isShutdown() {
        return inner.isShutdown();
    }

    @Override
    public boolean isTerminated() {
        return inner.isTerminated();
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
        return inner.awaitTermination(timeout, unit);
    }
}
