/** The error that ended a command as one line, with what to do where that is not obvious. */
export async function explanation(error: unknown): Promise<string> {
  if (!(error instanceof Error)) return String(error);
  return listenProblem(error) ?? withAdvice(error);
}

/**
 * Why a command cannot listen, and what to do; undefined for other errors.
 *
 * @param flagOf the flag that a port comes from, where it is known.
 */
export function listenProblem(
  error: unknown,
  flagOf: (port: number) => string | undefined = () => undefined,
): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const detail = (name: string): string => String(Reflect.get(error, name) ?? '');
  if (detail('port') === '') return undefined;
  const flag = flagOf(Number(detail('port')));
  const by = flag === undefined ? '' : ` with ${flag}`;
  const place = `port ${detail('port')} of ${detail('address')}`;
  switch (detail('code')) {
    case 'EADDRINUSE':
      return `${place} is in use: stop the process that listens there, or choose another port${by}`;
    case 'EACCES':
      return `${place} is not for this user: choose one above 1023${by}`;
    case 'ENOTSUP':
      return `${place} cannot be shared by processes on this system: leave out --workers`;
    case 'EADDRNOTAVAIL':
      return `${detail('address')} is not an address of this machine`;
    default:
      return undefined;
  }
}

/** Loaded only when needed: some commands never send a request to an API server. */
async function withAdvice(error: Error): Promise<string> {
  const { connectionAdvice } = await import('../client/availability-tracker.ts');
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const advice = connectionAdvice(cause);
    if (advice !== undefined) return `${error.message}: ${advice}`;
  }
  return error.message;
}
