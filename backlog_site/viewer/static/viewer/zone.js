// Names the time zone of this browser to the server, which shows every time in it.
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
if (timeZone) document.cookie = `timezone=${timeZone}; path=/; max-age=31536000; samesite=lax`;
