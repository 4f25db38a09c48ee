import type { Handler } from '../http/exchange.ts';

/** One named check; throws or rejects when it fails. */
export interface HealthCheck {
  readonly name: string;
  /** Which of the three paths it belongs to. */
  readonly on: readonly ('healthz' | 'livez' | 'readyz')[];
  check(): void;
}

/** Serves `/healthz`, `/livez`, `/readyz`, `?verbose`, `?exclude=` and one path per check. */
export function healthHandler(_checks: readonly HealthCheck[]): Handler {
  throw new Error('not built yet');
}
