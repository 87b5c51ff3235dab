// On the login page: sends the time zone of this browser to the server, as app.js does on every other page.
document.cookie = `timezone=${Intl.DateTimeFormat().resolvedOptions().timeZone || ''}; path=/; max-age=31536000; samesite=lax`;
