/** What ended a command, in one line, with what to do where that is not plain. */
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

/** Commands that never speak to an API server need not load what knows about it. */
async function withAdvice(error: Error): Promise<string> {
  const { connectionAdvice } = await import('../client/connection-advice.ts');
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const advice = connectionAdvice(cause);
    if (advice !== undefined) return `${error.message}: ${advice}`;
  }
  return error.message;
}
