import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { collectProcessMetrics } from '../../../src/telemetry/process-metrics.ts';

test('CPU time counts from the start of the process, not from the first scrape', async () => {
  const seconds = () => {
    const { user, system } = process.cpuUsage();
    return [user, system, user + system].map((microseconds) => microseconds / 1e6);
  };
  const registry = new Registry();
  const before = seconds();
  collectProcessMetrics(registry);
  const text = await registry.metrics();
  for (const [i, name] of ['user_seconds', 'system_seconds', 'seconds'].entries()) {
    const value = Number(new RegExp(`^process_cpu_${name}_total (.*)$`, 'm').exec(text)?.[1]);
    // The kernel divides the time into user and system anew at each question.
    expect(value).toBeGreaterThanOrEqual((before[i] ?? 0) - 0.01);
  }
});
