/** The error that ended a command as one line, with what to do where that is not obvious. */
export async function explanation(error: unknown): Promise<string> {
  if (!(error instanceof Error)) return String(error);
  const detail = (name: string): string => String(Reflect.get(error, name) ?? '');
  const place = `port ${detail('port')} of ${detail('address')}`;
  switch (detail('port') === '' ? '' : detail('code')) {
    case 'EADDRINUSE':
      return `${place} is in use: stop the process that listens there, or choose another port`;
    case 'EACCES':
      return `${place} is not for this user: choose one above 1023`;
    case 'EADDRNOTAVAIL':
      return `${detail('address')} is not an address of this machine`;
    default:
      return withAdvice(error);
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
